// What an operator should look at, in sentences; nothing is said about what is well.

import { $, h, keyed, setAttr, setText } from './dom.js';
import { count, names, plural } from './format.js';

const ids = (list) => names(list.map((b) => b.id));

function ofBackends(s) {
  const found = [];
  const with_ = (level, list, text) => list.length && found.push({ level, text: `${plural(list.length, 'backend')} ${text}: ${ids(list)}`, at: '#backends' });
  const { backends } = s;
  with_('bad', backends.filter((b) => b.health === 'unhealthy'), 'unhealthy');
  with_('warn', backends.filter((b) => b.health === 'healthy' && b.breaker !== 'closed'), 'with a breaker that is not closed');
  with_('warn', backends.filter((b) => b.health === 'starting'), 'starting');
  with_('warn', backends.filter((b) => b.health === 'draining'), 'draining');
  const elsewhere = backends.filter((b) => b.health === 'healthy' && Object.values(b.peers ?? {}).includes('unhealthy'));
  with_('warn', elsewhere, 'that another node sees as unhealthy');
  return found;
}

function ofMembers(s) {
  const found = [];
  for (const m of s.members) {
    const say = (level, text) => found.push({ level, text: `${m.name} ${text}`, at: '#cluster' });
    if (m.state === 'dead' || m.state === 'suspect') say('bad', `is ${m.state}`);
    else if (m.state === 'alive' && m.link === 'down') say('bad', 'is alive, but the link to it is down');
    else if (m.dirty) say('warn', 'has missed news and is being repaired');
    if (m.differs) say('warn', `is configured differently: ${m.differs}`);
  }
  return found;
}

function ofIndex(s) {
  const found = [];
  const say = (level, text) => found.push({ level, text, at: '#inside' });
  const index = s.index ?? {};
  const troubled = (index.sources ?? []).filter((source) => source.problem || source.state === 'degraded');
  if (troubled.length) say('warn', `${plural(troubled.length, 'source')} of KV cache events in trouble: ${names([...new Set(troubled.map((t) => t.backend))])}`);
  for (const model of index.lost ?? []) say('bad', `Nobody tells any more what ${model} has cached`);
  for (const model of index.distrusted ?? []) say('warn', `Predictions for ${model} did not come true: the block map decides`);
  for (const t of index.tokenizers ?? []) {
    if (!t.way) say('warn', `Prompts of ${t.model} can't be tokenized${t.problem ? `: ${t.problem}` : ''}`);
  }
  return found;
}

function ofTraffic(minute) {
  const found = [];
  if (minute?.errors) found.push({ level: 'bad', text: `${plural(minute.errors, 'request')} of ${count(minute.requests)} failed in the last minute`, at: '#decisions' });
  if (minute?.degraded) found.push({ level: 'warn', text: `${plural(minute.degraded, 'decision')} made without the backend's owner in the last minute`, at: '#decisions' });
  return found;
}

// attention lists at most a dozen: what is worst comes first.
export function attention(s, minute) {
  const found = [];
  if (!s.ready) found.push({ level: 'bad', text: `${s.node} is not ready: it gets no requests from a load balancer`, at: '#cluster' });
  found.push(...ofMembers(s), ...ofBackends(s), ...ofTraffic(minute), ...ofIndex(s));
  const rank = { bad: 0, warn: 1 };
  return found.sort((a, b) => rank[a.level] - rank[b.level]).slice(0, 12);
}

const words = { bad: 'Fault', warn: 'Look' };

export function showAttention(s, minute) {
  const list = attention(s, minute);
  if (!list.length) {
    const text = s.backends.length
      ? `All is well: ${plural(s.backends.length, 'backend')}, ${plural(s.members.length, 'node')}.`
      : 'No backend yet: see below how to add one.';
    list.push({ level: s.backends.length ? 'good' : 'warn', text, at: '#backends', plain: s.backends.length > 0 });
  }
  keyed($('attention'), list, (f) => f.at + f.text.replace(/\d+/g, '#').slice(0, 60) + f.level,
    (f) => h('li', null, h('span', { class: 'mark' }), f.plain ? h('span') : h('a', { href: f.at })),
    (row, f) => {
      setAttr(row, 'class', f.level);
      setText(row.firstElementChild, words[f.level] ?? 'Well');
      setText(row.lastElementChild, f.text);
    });
}
