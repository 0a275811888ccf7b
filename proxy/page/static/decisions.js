// The last decisions, why requests went where they went, and one of them in detail.

import { ask } from './api.js';
import { candidateTable, factList, factsOf, rawJSON, reasons, reasonTitle, sentence, shareBar } from './decision.js';
import { show } from './dialog.js';
import { $, classOf, h, keyed, setAttr, setText, svg, table, whole } from './dom.js';
import { count, millis, plural, share, timeOf } from './format.js';

const most = 200; // as many as the node keeps
const shown = 14;

const columns = [
  { title: 'Time' }, { title: 'Backend' }, { title: 'Reason' }, { title: 'Matched', num: true },
  { title: 'First token', num: true }, { title: 'Status', num: true },
];

export class Decisions {
  constructor() {
    this.list = []; // the newest first
    this.newest = 0;
    this.held = false;
    $('reason-filter').append(h('option', { value: '' }, 'all'), ...Object.keys(reasons).map((r) => h('option', { value: r }, reasonTitle(r))));
    $('reason-filter').addEventListener('change', () => this.render(true));
    $('hold').addEventListener('click', () => this.hold(!this.held));
    const made = table('Recent decisions, the newest first', columns);
    this.body = made.body;
    this.empty = h('p', { class: 'empty' }, 'No request has been routed yet.');
    $('decision-list').append(made.element, this.empty);
    $('decision-list').addEventListener('focusout', () => this.render());
    this.makeReasons();
  }

  hold(on) {
    this.held = on;
    setAttr($('hold'), 'aria-pressed', on);
    this.render();
  }

  // path is what to ask the node for.
  path() {
    return `/decisions?after=${this.newest}&limit=${most}`;
  }

  take(answer) {
    if (answer.newest < this.newest) this.list = []; // the node has begun anew
    this.newest = answer.newest;
    if (answer.decisions.length) this.list = [...answer.decisions.reverse(), ...this.list].slice(0, most);
    this.render();
  }

  // Rows must not move under who reads them.
  reading() {
    return this.held || $('decision-list').contains(document.activeElement);
  }

  render(asked = false) {
    const wanted = $('reason-filter').value;
    setText($('decisions-note'), this.reading() ? 'Held while you read.' : `The last ${count(this.list.length)} of ${count(this.newest)}.`);
    if (this.reading() && !asked) return;
    const rows = this.list.filter((d) => !wanted || d.decision.reason === wanted).slice(0, shown);
    keyed(this.body, rows, (d) => d.seq, (d) => this.row(d), () => {});
    this.empty.hidden = rows.length > 0;
    setText(this.empty, this.list.length ? 'None of the last ones has this reason.' : 'No request has been routed yet.');
  }

  row(d) {
    const { decision } = d;
    const time = timeOf(new Date(d.time));
    const open = h('button', { type: 'button', class: 'link whole', 'aria-label': `${time}, details`, on: { click: () => this.open(d) } }, time);
    const cells = [
      h('span', { class: whole(decision.backend) }, decision.backend), h('span', { class: `reason ${decision.reason}` }, reasonTitle(decision.reason)),
      shareBar(decision.chain_blocks ? decision.matched_blocks / decision.chain_blocks : 0, `${count(decision.matched_blocks)}/${count(decision.chain_blocks)}`),
      d.ttft_ms ? millis(d.ttft_ms) : '', h('span', { class: d.status >= 500 ? 'bad' : null }, d.status),
    ];
    return h('tr', null, h('td', null, open), cells.map((content, i) => h('td', { class: classOf(columns[i + 1]) }, content)));
  }

  async open(d) {
    let full = d;
    let note = '';
    try {
      const { decisions } = await ask(`/decisions?seq=${d.seq}`);
      if (decisions.length) [full] = decisions;
      else note = 'The node keeps no more of this decision.';
    } catch (fault) {
      note = `The node did not answer: ${fault.message}`;
    }
    show(`Decision ${count(full.seq)}`, ...this.detail(full, note));
  }

  detail(d, note) {
    const { decision } = d;
    const listed = decision.candidates ?? [];
    return [
      h('p', { class: 'sentence' }, sentence(decision)),
      factList([...factsOf(decision), ...requestFacts(d)]),
      h('h3', null, 'Candidates'),
      listed.length ? candidateTable(decision) : h('p', { class: 'note' }, note
        || 'They were not listed for this request: it costs time, so it is done for a few a second while this page is open. Explain lists them all.'),
      d.candidates_left_out ? h('p', { class: 'note' }, `${plural(d.candidates_left_out, 'more candidate')} were not kept.`) : '',
      rawJSON(d),
    ];
  }

  // makeReasons draws the last minute's reasons as one bar.
  makeReasons() {
    this.bars = svg('svg', { class: 'stack', viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    this.shares = h('ul', { class: 'shares', 'aria-label': 'Reasons in the last minute' });
    $('reasons').append(this.bars, this.shares);
  }

  showReasons(minute) {
    const total = Object.values(minute.reasons).reduce((sum, n) => sum + n, 0);
    const list = Object.keys(reasons).filter((r) => minute.reasons[r]).map((reason) => ({ reason, n: minute.reasons[reason] }));
    let x = 0;
    for (const part of list) {
      part.x = x;
      part.width = (part.n / total) * 100;
      x += part.width;
    }
    keyed(this.bars, list, (p) => p.reason, (p) => svg('rect', { class: `reason-fill ${p.reason}`, height: 8 }), (rect, p) => {
      setAttr(rect, 'x', p.x.toFixed(2));
      setAttr(rect, 'width', Math.max(p.width - 0.4, 0.3).toFixed(2));
    });
    keyed(this.shares, list, (p) => p.reason,
      (p) => h('li', null, h('span', { class: `swatch ${p.reason}` }), h('span', null, reasonTitle(p.reason)), h('b')),
      (row, p) => setText(row.lastElementChild, share(p.n / total)));
  }
}

function requestFacts(d) {
  const tokens = (n) => (n >= 0 ? count(n) : 'not reported');
  const list = [
    ['Request', d.request_id], ['Endpoint', d.endpoint], ['Model', d.alias ? `${d.model}, asked for as ${d.alias}` : d.model],
    ['Status', d.code ? `${d.status}, ${d.code}` : d.status], ['Attempts', d.attempts],
    ['First token', d.ttft_ms ? millis(d.ttft_ms) : 'none'], ['Duration', millis(d.duration_ms)], ['In the gateway', millis(d.gateway_ms)],
    ['Prompt tokens', tokens(d.prompt_tokens)], ['Of them cached', tokens(d.cached_tokens)], ['Output tokens', tokens(d.output_tokens)],
  ];
  if (d.queued_ms) list.push(['Waited', millis(d.queued_ms)]);
  if (d.tenant) list.push(['Tenant', d.tenant]);
  if (d.trace) list.push(['Trace', d.trace]);
  return list;
}
