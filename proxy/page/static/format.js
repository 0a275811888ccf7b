// Numbers for people.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const minute = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });

export const none = '–';
const known = (n) => typeof n === 'number' && Number.isFinite(n);

// Three figures are as many as one reads at a glance.
const figures = (n) => (n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2)).replace(/\.0+$/, '');

export const count = (n) => (known(n) ? whole.format(n) : none);

export function short(n) {
  if (!known(n)) return none;
  if (n < 10_000) return whole.format(n);
  if (n < 1e6) return `${figures(n / 1e3)}k`;
  return n < 1e9 ? `${figures(n / 1e6)}M` : `${figures(n / 1e9)}G`;
}

export function rate(n) {
  if (!known(n)) return none;
  return n === 0 ? '0' : n < 10 ? n.toFixed(1) : short(Math.round(n));
}

export function millis(ms) {
  if (!known(ms)) return none;
  if (ms < 1) return `${figures(ms)} ms`;
  if (ms < 1000) return `${ms < 10 ? figures(ms) : Math.round(ms)} ms`;
  return ms < 60_000 ? `${figures(ms / 1000)} s` : `${figures(ms / 60_000)} min`;
}

export const share = (s) => (known(s) ? `${(s * 100).toFixed(s > 0 && s < 0.1 ? 1 : 0)} %` : none);

export function bytes(n) {
  if (!known(n)) return none;
  for (const [unit, size] of [['GB', 1e9], ['MB', 1e6], ['kB', 1e3]]) {
    if (n >= size) return `${figures(n / size)} ${unit}`;
  }
  return `${whole.format(n)} B`;
}

export const timeOf = (date) => clock.format(date);
export const minuteOf = (date) => minute.format(date);
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

// names lists the first few.
export function names(list, most = 4) {
  return list.length <= most ? list.join(', ') : `${list.slice(0, most).join(', ')} and ${list.length - most} more`;
}
