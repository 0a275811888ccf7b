// Ten minutes of seconds, in arrays of fixed length that are shifted in place.

export const WINDOW = 600;
const smooth = 10; // seconds that a share or a mean is of: of one second it jumps

const columns = ['requests', 'errors', 'refused', 'prompt', 'cached', 'p50', 'p90', 'inFlight', 'queued'];
const smoothed = ['errors', 'refused', 'p50', 'p90'];

export class Series {
  constructor() {
    this.newest = 0;
    this.x = new Array(WINDOW).fill(0);
    for (const c of columns) this[c] = new Array(WINDOW).fill(null);
    this.share = new Array(WINDOW).fill(null);
    for (const c of smoothed) this[`${c}Smooth`] = new Array(WINDOW).fill(null);
  }

  // take adds an answer of /live.
  take(answer) {
    this.moveTo(answer.now);
    for (const s of answer.seconds) {
      const i = WINDOW - 1 - (answer.now - s.second);
      if (i >= 0 && i < WINDOW) this.put(i, s, s.second === answer.now);
    }
    this.shares();
    for (const c of smoothed) mean(this[c], this[`${c}Smooth`]);
  }

  moveTo(now) {
    const by = now - this.newest;
    if (by === 0) return;
    const all = by < 0 || by >= WINDOW; // the node's clock was set back, or nothing is left
    for (const c of columns) {
      if (!all) this[c].copyWithin(0, by);
      this[c].fill(null, all ? 0 : WINDOW - by);
    }
    for (let i = 0; i < WINDOW; i++) this.x[i] = now - WINDOW + 1 + i;
    this.newest = now;
  }

  // Of the second under way only the levels are known.
  put(i, s, underWay) {
    this.inFlight[i] = s.in_flight;
    this.queued[i] = s.queued;
    if (underWay) return;
    this.requests[i] = s.requests;
    this.errors[i] = s.errors;
    this.refused[i] = s.refused;
    this.prompt[i] = s.prompt_tokens;
    this.cached[i] = s.cached_tokens;
    this.p50[i] = s.ttft_p50_ms;
    this.p90[i] = s.ttft_p90_ms;
  }

  shares() {
    let prompt = 0;
    let cached = 0;
    for (let i = 0; i < WINDOW; i++) {
      prompt += this.prompt[i] ?? 0;
      cached += this.cached[i] ?? 0;
      if (i >= smooth) {
        prompt -= this.prompt[i - smooth] ?? 0;
        cached -= this.cached[i - smooth] ?? 0;
      }
      this.share[i] = prompt > 0 ? cached / prompt : null;
    }
  }

  // sum adds a column up over the last whole seconds that are known, over says how
  // many those are.
  sum(column, seconds) {
    let sum = 0;
    let over = 0;
    for (let i = WINDOW - 1 - seconds; i < WINDOW - 1; i++) {
      if (this[column][i] === null) continue;
      sum += this[column][i];
      over++;
    }
    return { sum, over };
  }

  rate(column, seconds) {
    const { sum, over } = this.sum(column, seconds);
    return over ? sum / over : NaN;
  }

  // minutes are the ten minutes, the newest first.
  minutes() {
    const list = [];
    for (let to = WINDOW - 1; to - 60 >= 0; to -= 60) {
      const of = (column, start, add) => this[column].slice(to - 60, to).filter((v) => v !== null).reduce(add, start);
      const plus = (a, b) => a + b;
      const known = this.requests.slice(to - 60, to).some((v) => v !== null);
      if (!known) continue;
      const prompt = of('prompt', 0, plus);
      list.push({
        from: this.x[to - 60], requests: of('requests', 0, plus), errors: of('errors', 0, plus),
        share: prompt ? of('cached', 0, plus) / prompt : NaN,
        p50: median(this.p50.slice(to - 60, to)), p90: median(this.p90.slice(to - 60, to)),
        inFlight: of('inFlight', 0, Math.max), queued: of('queued', 0, Math.max),
      });
    }
    return list;
  }
}

// mean writes the means of the last few known values; null stays null.
function mean(from, to) {
  let sum = 0;
  let known = 0;
  for (let i = 0; i < WINDOW; i++) {
    if (from[i] !== null) {
      sum += from[i];
      known++;
    }
    if (i >= smooth && from[i - smooth] !== null) {
      sum -= from[i - smooth];
      known--;
    }
    to[i] = from[i] === null ? null : sum / known;
  }
}

function median(list) {
  const sorted = list.filter((v) => v !== null).sort((a, b) => a - b);
  return sorted.length ? sorted[sorted.length >> 1] : NaN;
}
