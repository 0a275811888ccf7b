// A decision as sentences and tables: for the last ones and for explanations.

import { bar, classOf, facts, h, setBar, table, whole } from './dom.js';
import { bytes, count, plural } from './format.js';

export const reasons = {
  hit: ['Longest prefix', 'holds the longest known prefix of the prompt'],
  load_override: ['Less loaded', 'was cheaper than a backend that holds more of the prompt but is busier'],
  miss: ['Nothing cached', 'was the cheapest: no eligible backend is known to hold any of the prompt, which may be shorter than a block'],
  no_chain: ['Not matched', 'was the cheapest: the body was not read, or has nothing to match'],
  pinned: ['Continues', 'keeps the response that the request continues'],
  last_resort: ['Last resort', 'was tried anyway: no backend was eligible'],
  policy: ['By policy', 'came next: the policy does not look at prompts'],
};

export const reasonTitle = (reason) => reasons[reason]?.[0] ?? reason;

export function sentence(d) {
  const blocks = d.chain_blocks ? ` It is known to hold ${count(d.matched_blocks)} of ${plural(d.chain_blocks, 'block')}.` : '';
  return `${d.backend || 'No backend'} ${reasons[d.reason]?.[1] ?? d.reason}.${blocks}`;
}

const unitOf = (d) => (d.block_unit === 'tokens' ? 'the engine’s blocks' : 'blocks of text');

const indexWords = { whole: 'asked for the whole prompt', beginning: 'only the beginning was known in time', fallback: 'not asked' };

export function factsOf(d) {
  const list = [
    ['Backend', d.backend], ['Reason', reasonTitle(d.reason)],
    ['Matched', `${count(d.matched_blocks)} of ${count(d.chain_blocks)} ${unitOf(d)}`],
    ['To compute', plural(d.novel_blocks, 'block')],
    ['Policy', d.policy], ['Phase', d.phase],
    ['Owner', d.owner || 'this node'],
  ];
  if (d.degraded) list.push(['Degraded', 'decided without the owner']);
  if (d.index) list.push(['Precise index', indexWords[d.index] + (d.fallback ? `: ${d.fallback}` : '')]);
  if (d.predicted_cached_tokens) list.push(['Predicted cached', plural(d.predicted_cached_tokens, 'token')]);
  return list;
}

export function factList(pairs) {
  const list = h('dl', { class: 'facts' });
  facts(list, pairs);
  return list;
}

// shareBar is a number with a bar beside it.
export function shareBar(share, text, kind) {
  const drawn = bar(kind);
  setBar(drawn, share);
  return h('span', { class: 'with-bar' }, h('span', null, text), drawn);
}

const columns = [
  { title: 'Backend' }, { title: 'Verdict' }, { title: 'Matched', num: true }, { title: 'Known from', minor: true },
  { title: 'Load', num: true, minor: true }, { title: 'Cost', num: true },
];
const page = 50;

const rank = (c, chosen) => (c.backend === chosen ? 0 : c.eligible ? 1 : 2);

function candidateRow(c, d, dearest) {
  const cells = [
    [c.eligible ? c.why : `not eligible: ${c.why}`], [shareBar(d.chain_blocks ? c.matched_blocks / d.chain_blocks : 0, count(c.matched_blocks))],
    [c.index === 'map' ? 'block map' : c.index], [bytes(c.load)],
    [c.eligible || c.backend === d.backend ? shareBar(dearest ? c.cost / dearest : 0, bytes(c.cost), 'cost') : ''],
  ];
  return h('tr', { class: c.backend === d.backend ? 'chosen' : c.eligible ? null : 'out' },
    h('th', { scope: 'row', class: whole(c.backend) }, c.backend), cells.map((content, i) => h('td', { class: classOf(columns[i + 1]) }, content)));
}

// candidateTable lists candidates by cost, a page at a time.
export function candidateTable(d) {
  const list = [...d.candidates].sort((a, b) => rank(a, d.backend) - rank(b, d.backend) || a.cost - b.cost || a.backend.localeCompare(b.backend));
  const dearest = Math.max(...list.map((c) => c.cost), 0);
  const { element, body } = table('Candidates, the chosen one first, then by cost', columns);
  let shown = 0;
  const more = h('button', { type: 'button', on: { click: grow } });
  function grow() {
    body.append(...list.slice(shown, shown + page).map((c) => candidateRow(c, d, dearest)));
    shown = Math.min(shown + page, list.length);
    more.hidden = shown >= list.length;
    more.textContent = `Show ${count(Math.min(page, list.length - shown))} more of ${count(list.length)}`;
  }
  grow();
  return h('div', null,
    h('div', { class: 'scroll', role: 'region', 'aria-label': 'Candidates', tabindex: 0 }, element), more,
    h('p', { class: 'note' }, 'Load and cost are in bytes of prompt text that a backend has yet to compute; the least cost wins.'));
}

export function rawJSON(value) {
  return h('details', { class: 'raw' }, h('summary', null, 'JSON'),
    h('pre', { tabindex: 0, role: 'region', 'aria-label': 'JSON' }, JSON.stringify(value, null, 2)));
}
