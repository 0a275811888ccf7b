// The table of backends: sorted, filtered, a page at a time; drain and undrain.

import { ask, Refused } from './api.js';
import { factList } from './decision.js';
import { close, question, show } from './dialog.js';
import { $, bar, classOf, h, keyed, setAttr, setBar, setHidden, setText, whole } from './dom.js';
import { count, names, plural, share } from './format.js';

const page = 25;
const bad = { unhealthy: 0, starting: 1, draining: 2, healthy: 3 };

// A column's value is what it sorts by; show writes it into its cell.
const columns = [
  { id: 'id', title: 'Backend', value: (b) => b.id },
  { id: 'health', title: 'Health', value: (b) => bad[b.health] ?? 4 },
  { id: 'active', title: 'Active', num: true, value: (b) => -b.active },
  { id: 'running', title: 'Running', num: true, minor: true, value: (b) => -b.running },
  { id: 'waiting', title: 'Waiting', num: true, value: (b) => -b.waiting },
  { id: 'kv_usage', title: 'Cache in use', num: true, value: (b) => -b.kv_usage },
  { id: 'breaker', title: 'Breaker', minor: true, value: (b) => b.breaker },
  { id: 'generation', title: 'Generation', num: true, minor: true, value: (b) => -b.generation },
  { id: 'owner', title: 'Owner', minor: true, value: (b) => b.owner },
  { id: 'models', title: 'Models', minor: true, value: (b) => (b.models ?? []).join() },
];

const compare = (a, b) => (typeof a === 'string' ? a.localeCompare(b, 'en', { numeric: true }) : a - b);

// matches is whether a backend has every word; owner:NAME is exact.
function matches(b, words) {
  const text = [b.id, b.url, b.owner, b.health, b.breaker, ...(b.models ?? [])].join('\n').toLowerCase();
  return words.every((w) => (w.startsWith('owner:') ? b.owner.toLowerCase() === w.slice(6) : text.includes(w)));
}

export class Backends {
  // changed is called after a drain or its end.
  constructor(changed) {
    this.changed = changed;
    this.list = [];
    this.most = 1;
    this.sort = { column: columns[0], down: false };
    this.at = 0;
    $('health-filter').append(h('option', { value: '' }, 'all'), ...Object.keys(bad).map((health) => h('option', null, health)));
    for (const control of ['find', 'health-filter']) $(control).addEventListener('input', () => this.restart());
    this.makeTable();
    this.makePager();
  }

  makeTable() {
    this.heads = columns.map((c) => h('th', { scope: 'col', class: classOf(c) },
      h('button', { type: 'button', class: 'sort', on: { click: () => this.sortBy(c) } }, c.title)));
    this.body = h('tbody');
    this.table = h('table', null, h('caption', { class: 'hidden' }, 'Backends; the buttons in the head sort'),
      h('thead', null, h('tr', null, this.heads, h('th', { scope: 'col', class: 'end' }, 'Action'))), this.body);
    this.empty = h('div', { class: 'empty', hidden: true });
    $('backend-list').append(this.table, this.empty);
    this.showSort();
  }

  makePager() {
    const turn = (by) => () => {
      this.at += by;
      this.render();
    };
    this.back = h('button', { type: 'button', on: { click: turn(-1) } }, 'Back');
    this.next = h('button', { type: 'button', on: { click: turn(1) } }, 'Next');
    this.place = h('span', { class: 'note' });
    $('pager').append(this.back, this.place, this.next);
  }

  sortBy(column) {
    this.sort = { column, down: this.sort.column === column && !this.sort.down };
    this.showSort();
    this.restart();
  }

  showSort() {
    columns.forEach((c, i) => setAttr(this.heads[i], 'aria-sort', c === this.sort.column ? (this.sort.down ? 'descending' : 'ascending') : null));
  }

  restart() {
    this.at = 0;
    this.render();
  }

  // find shows the backends that words match.
  find(words) {
    $('find').value = words;
    $('health-filter').value = '';
    this.restart();
  }

  update(status) {
    this.list = status.backends;
    this.most = Math.max(...this.list.map((b) => b.active), 1);
    if (this.body.contains(document.activeElement)) this.refresh();
    else this.render();
  }

  // refresh leaves rows where they are: one of them has the focus.
  refresh() {
    for (const [id, row] of this.body.rowsByKey) {
      const b = this.of(id);
      if (b) this.fill(row, b);
    }
  }

  chosen() {
    const words = $('find').value.toLowerCase().split(/\s+/).filter(Boolean);
    const health = $('health-filter').value;
    const { column, down } = this.sort;
    const list = this.list.filter((b) => (!health || b.health === health) && matches(b, words));
    return list.sort((a, b) => (down ? -1 : 1) * (compare(column.value(a), column.value(b)) || compare(a.id, b.id)));
  }

  render() {
    const list = this.chosen();
    this.at = Math.max(Math.min(this.at, Math.ceil(list.length / page) - 1), 0);
    const from = this.at * page;
    keyed(this.body, list.slice(from, from + page), (b) => b.id, (b) => this.row(b), (row, b) => this.fill(row, b));
    setText($('backends-note'), list.length === this.list.length ? plural(list.length, 'backend') : `${count(list.length)} of ${plural(this.list.length, 'backend')}`);
    setHidden($('pager'), list.length <= page);
    setText(this.place, `${count(from + 1)} to ${count(Math.min(from + page, list.length))} of ${count(list.length)}`);
    this.back.disabled = this.at === 0;
    this.next.disabled = from + page >= list.length;
    this.showEmpty(list.length);
  }

  showEmpty(shown) {
    setHidden(this.table, shown === 0);
    setHidden(this.empty, shown > 0);
    if (shown > 0) return;
    const kind = this.list.length ? 'none' : 'new';
    if (this.empty.dataset.kind === kind) return;
    this.empty.dataset.kind = kind;
    this.empty.replaceChildren(...(kind === 'none' ? [h('p', null, 'No backend matches.')] : [
      h('p', null, 'This node has no backend yet, so requests get 503. Start it with one:'),
      h('pre', null, 'kvca serve --backend gpu-1=http://10.0.0.11:8000'),
      h('p', null, 'or add one now:'),
      h('pre', null, `curl ${location.origin}/backends -d '{"id":"gpu-1","url":"http://10.0.0.11:8000"}'`),
    ]));
  }

  row(b) {
    const cell = (i, ...content) => h('td', { class: classOf(columns[i]) }, ...content);
    const row = h('tr', null,
      h('th', { scope: 'row' }, h('button', { type: 'button', class: ['link', whole(b.id)].join(' ').trim(), on: { click: () => this.open(b.id) } }, b.id), h('span', { class: 'address' })),
      cell(1, h('span', { class: 'state' })),
      cell(2, h('span', { class: 'with-bar' }, h('span'), bar())), cell(3), cell(4),
      cell(5, h('span', { class: 'with-bar' }, h('span'), bar('cache'))),
      cell(6), cell(7), cell(8), cell(9),
      h('td', { class: 'end' }, h('button', { type: 'button', on: { click: () => this.ask(b.id) } })));
    return row;
  }

  fill(row, b) {
    const [, health, active, running, waiting, cache, breaker, generation, owner, models, action] = row.cells;
    setText(row.cells[0].lastElementChild, b.url.replace(/^https?:\/\//, ''));
    setText(health.firstChild, b.health);
    setAttr(health.firstChild, 'class', `state ${b.health}`);
    setAttr(health, 'title', b.last_error || null);
    const level = (cell, text, part) => {
      setText(cell.firstChild.firstChild, text);
      setBar(cell.firstChild.lastChild, part);
    };
    level(active, count(b.active), b.active / this.most);
    level(cache, share(b.kv_usage), b.kv_usage);
    [[running, count(b.running)], [waiting, count(b.waiting)], [breaker, b.breaker], [generation, count(b.generation)], [owner, b.owner], [models, names(b.models ?? [], 2)]]
      .forEach(([cell, text]) => setText(cell, text));
    setAttr(owner, 'class', ['minor', whole(b.owner)].join(' ').trim());
    setAttr(breaker, 'class', `minor${b.breaker === 'closed' ? '' : ' warn'}`);
    const draining = b.health === 'draining';
    setText(action.firstChild, draining ? 'Undrain' : 'Drain');
    setAttr(action.firstChild, 'aria-label', `${draining ? 'Undrain' : 'Drain'} ${b.id}`);
  }

  of(id) {
    return this.list.find((b) => b.id === id);
  }

  open(id) {
    const b = this.of(id);
    if (!b) return;
    const peers = Object.entries(b.peers ?? {}).map(([node, health]) => `${node}: ${health}`);
    show(b.id, factList([
      ['Address', b.url], ['Health', b.health], ['Standing', b.standing], ['Last error', b.last_error || 'none'],
      ['Breaker', b.breaker], ['As peers see it', peers.join(', ') || 'no peer has said'],
      ['Active, all nodes', count(b.active)], ['Running, waiting', `${count(b.running)}, ${count(b.waiting)}`],
      ['Blocks to compute', count(b.novel_blocks)], ['Cache in use', share(b.kv_usage)],
      ['Cache size', b.cache_tokens ? `${plural(b.cache_tokens, 'token')}, blocks of ${count(b.block_tokens)}` : 'not known'],
      ['Owner', b.owner], ['Generation', count(b.generation)], ['Weight, speed', `${b.weight}, ${Math.round(b.speed * 100) / 100}`],
      ['Known from', b.learned ? 'a peer' : 'this node’s configuration'],
      ['Models', (b.models ?? []).join(', ') || 'none yet'], ['LoRA adapters', (b.lora_adapters ?? []).join(', ') || 'none'],
    ]));
  }

  // ask wants a drain or its end confirmed.
  ask(id) {
    const b = this.of(id);
    if (!b) return;
    const draining = b.health === 'draining';
    const verb = draining ? 'Undrain' : 'Drain';
    const effect = draining
      ? `${id} gets requests again, from every node.`
      : `${id} gets no new request, from any node, until you end the drain. Its ${plural(b.active, 'active request')} go on.`;
    const fault = h('p', { class: 'fault', role: 'alert' });
    const go = h('button', { type: 'button', class: 'primary', on: { click: () => this.change(id, verb.toLowerCase(), go, fault) } }, `${verb} ${id}`);
    const cancel = h('button', { type: 'button', on: { click: close } }, 'Cancel');
    question(`${verb} ${id}?`, h('p', null, effect), fault, h('div', { class: 'controls end' }, cancel, go));
  }

  async change(id, verb, button, fault) {
    button.disabled = true;
    try {
      await ask(`/backends/${encodeURIComponent(id)}/${verb}`, { method: 'POST' });
      close();
    } catch (error) {
      const locked = error instanceof Refused && (error.status === 401 || error.status === 403);
      fault.textContent = locked ? 'The node asks for its admin token: close this and give it above.' : `Not done: ${error.message}`;
      button.disabled = false;
      if (locked) this.changed(true);
      return;
    }
    this.changed(false);
  }
}
