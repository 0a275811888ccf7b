// Tenants and their limits, the precise index, and what this node holds.

import { $, facts, h, keyed, setHidden, setText, table, whole } from './dom.js';
import { bytes, count, names, none, plural, rate, share } from './format.js';

const shown = 50;

// Tokens a second come in thousands.
const short = (n) => (n >= 10_000 ? `${rate(n / 1000)}k` : rate(n));

const indexWords = {
  disabled: 'Off: no engine is asked what it holds, the block map decides. Start with --events to switch it on.',
  learning: 'Switched on, and nothing heard yet: the block map decides.',
  live: 'Live: engines say what they hold, and decisions go by it.',
  lost: 'Lost: of the models below nobody tells any more. The block map decides.',
};

export class Limits {
  constructor() {
    this.tenants = table('Tenants with limits: used of what they may, by this node, or by all where this node is the owner', [
      { title: 'Tenant' }, { title: 'Owner', minor: true }, { title: 'Requests/s', num: true }, { title: 'Tokens/s', num: true },
      { title: 'At once', num: true },
    ]);
    $('tenants').append(this.tenants.element);
    this.sources = table('Sources of the precise index, those in trouble first', [
      { title: 'Backend' }, { title: 'Rank', num: true }, { title: 'Told by' }, { title: 'State' }, { title: 'Blocks', num: true },
      { title: 'Gaps', num: true }, { title: 'Problem' },
    ]);
    $('sources').append(this.sources.element);
    this.tokenizers = table('How prompts are tokenized', [{ title: 'Model' }, { title: 'Way' }, { title: 'Problem' }]);
    $('tokenizers').append(this.tokenizers.element);
  }

  update(status) {
    this.showTenants(status);
    this.showNode(status);
    this.showIndex(status.index ?? { status: 'disabled' });
  }

  // A node without tenants that have limits has no such list.
  showTenants({ limits, queue }) {
    const waiting = queue?.waiting ?? 0;
    setHidden($('limits'), !limits?.length && !waiting);
    const list = limits ?? [];
    setText($('limits-note'), `${plural(list.length, 'limit')} in use; ${plural(waiting, 'request')} waiting for a turn`);
    keyed(this.tenants.body, list.slice(0, 4 * shown), (l) => `${l.tenant}\n${l.model ?? ''}`,
      (l) => h('tr', null, h('th', { scope: 'row' }, l.model ? `${l.tenant}, ${l.model}` : l.tenant), h('td', { class: 'minor' }), Array.from({ length: 3 }, () => h('td', { class: 'num' }))),
      (row, l) => {
        const used = l.cluster ?? l.here;
        const of = (name) => (l.limit[name] ? `${short(used[name])} of ${short(l.limit[name])}` : none);
        [l.degraded ? `${l.owner} (not reached)` : l.owner, of('requests_per_second'), of('tokens_per_second'), of('concurrent')]
          .forEach((text, i) => setText(row.cells[i + 1], text));
      });
  }

  showNode({ block_map: map, reservations: r, in_flight: inFlight, divergence }) {
    const apart = Object.entries(divergence ?? {}).filter(([, n]) => n > 0);
    facts($('facts'), [
      ['Block map', `${bytes(map.bytes)} of ${bytes(map.max_bytes)} (${share(map.max_bytes ? map.bytes / map.max_bytes : 0)})`],
      ['Blocks', count(map.blocks)], ['Locations', count(map.locations)], ['Tentative', count(map.tentative)],
      ['Expired, evicted', `${count(map.expired)}, ${count(map.evicted)}`],
      ['In flight', count(inFlight)], ['Reservations held', count(r.held)], ['Granted as owner', count(r.granted)],
      ['Refused by owners', count(r.refused)], ['Decided without owner', count(r.degraded)],
      ['Maps that differ', apart.length ? names(apart.map(([node, n]) => `${node} by ${count(n)}`)) : 'none'],
    ]);
  }

  showIndex(index) {
    setText($('index-state'), indexWords[index.status] ?? index.status);
    const on = index.status !== 'disabled';
    const list = !on ? [] : [
      ['Memory', `${bytes(index.bytes)} of ${bytes(index.max_bytes)}`], ['Blocks', count(index.blocks)], ['Entries', count(index.entries)],
      ['Dropped', count(index.dropped)], ['Lost models', names(index.lost ?? []) || 'none'], ['Distrusted models', names(index.distrusted ?? []) || 'none'],
    ];
    facts($('index-facts'), list);
    this.showSources(index.sources ?? []);
    this.showTokenizers(index.tokenizers ?? []);
  }

  showSources(sources) {
    setHidden($('sources'), !sources.length);
    const trouble = (s) => (s.problem ? 0 : s.state === 'live' ? 2 : 1);
    const list = [...sources].sort((a, b) => trouble(a) - trouble(b) || a.backend.localeCompare(b.backend, 'en', { numeric: true }) || a.rank - b.rank);
    setText(this.sources.element.caption, `Sources of the precise index, those in trouble first${list.length > shown ? `: ${shown} of ${count(list.length)}` : ''}`);
    keyed(this.sources.body, list.slice(0, shown), (s) => `${s.backend} ${s.rank} ${s.by}`,
      (s) => h('tr', null, h('th', { scope: 'row', class: whole(s.backend) }, s.backend), ['num', null, null, 'num', 'num', null].map((c) => h('td', { class: c }))),
      (row, s) => [count(s.rank), s.by, s.state, count(s.blocks), count(s.gaps), s.problem].forEach((text, i) => setText(row.cells[i + 1], text ?? '')));
  }

  showTokenizers(list) {
    setHidden($('tokenizers'), !list.length);
    keyed(this.tokenizers.body, list.slice(0, shown), (t) => t.model,
      (t) => h('tr', null, h('th', { scope: 'row' }, t.model), h('td'), h('td')),
      (row, t) => [t.way || 'none', t.problem].forEach((text, i) => setText(row.cells[i + 1], text ?? '')));
  }
}
