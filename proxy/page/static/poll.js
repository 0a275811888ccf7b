// Asks again and again: one round at a time, slower while the node does not answer,
// not at all while nobody looks.

import { Refused } from './api.js';

const every = 1000; // ms
const slowest = 15_000;

// Poller calls round(signal, turn) and tells the state of things: live, failing,
// locked (a token is asked for) or paused.
export class Poller {
  constructor(round, tell) {
    this.round = round;
    this.tell = tell;
    this.turn = 0;
    this.failures = 0;
    this.since = null; // when the node was first missed
    this.good = null; // when it last answered
    this.timer = 0;
    this.abort = null;
    // For tests: ?speed=20 lets a minute pass in three seconds.
    this.speed = Math.min(Math.max(Number(new URLSearchParams(location.search).get('speed')) || 1, 1), 100);
    document.addEventListener('visibilitychange', () => (document.hidden ? this.stop('paused') : this.now()));
  }

  stop(state) {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.abort = null;
    this.tell({ state, good: this.good });
  }

  // now asks at once, whatever was planned.
  now() {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.ask();
  }

  async ask() {
    const abort = new AbortController();
    this.abort = abort;
    try {
      await this.round(abort.signal, this.turn++);
      if (this.abort !== abort) return; // another round has begun, or none is wanted
      this.failures = 0;
      this.since = null;
      this.good = new Date();
      this.tell({ state: 'live', good: this.good });
      this.plan(every / this.speed);
    } catch (fault) {
      if (this.abort !== abort) return;
      abort.abort(); // what else the round had under way
      if (fault instanceof Refused && (fault.status === 401 || fault.status === 403)) {
        this.stop('locked');
        return;
      }
      this.failed(fault);
    }
  }

  failed(fault) {
    this.since ??= new Date();
    this.failures++;
    const wait = Math.min(every * 2 ** (this.failures - 1), slowest) * (0.8 + 0.4 * Math.random()) / this.speed;
    this.tell({ state: 'failing', good: this.good, since: this.since, tries: this.failures, next: new Date(Date.now() + wait), why: fault });
    this.plan(wait);
  }

  plan(wait) {
    this.timer = setTimeout(() => this.ask(), wait);
  }
}
