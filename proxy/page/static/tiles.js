// Figures at a glance, each with its last ten minutes.

import uPlot from './vendor/uPlot.esm.js';
import { colour } from './colour.js';
import { $, h, setAttr, setText, table } from './dom.js';
import { count, millis, minuteOf, none, rate, share, timeOf } from './format.js';
import { onTheme } from './theme.js';

const height = 104;
const font = '11px system-ui, sans-serif';

// A tile's lines are columns of the series, the first drawn above the others.
const kinds = [
  {
    title: 'Requests a second', lines: [['requests', 'accent']], show: rate, floor: 1,
    now: (s) => [rate(s.series.rate('requests', 10)), `${count(s.minute?.requests)} in the last minute`],
  },
  {
    title: 'First token, median', lines: [['p50Smooth', 'accent'], ['p90Smooth', 'second']], show: millis, floor: 10,
    now: (s) => [millis(s.minute?.ttft_p50_ms), `90th percentile ${millis(s.minute?.ttft_p90_ms)}`],
  },
  {
    title: 'From cache', lines: [['share', 'accent']], show: share, top: 1,
    now: (s) => [share(s.minute?.prompt_tokens ? s.minute.cached_tokens / s.minute.prompt_tokens : NaN), hitNote(s.minute)],
  },
  {
    title: 'In flight', lines: [['inFlight', 'accent']], show: count, floor: 4,
    now: (s) => [count(s.series.inFlight.at(-1)), 'served by this node now'],
  },
  {
    title: 'Waiting', lines: [['queued', 'accent']], show: count, floor: 4,
    now: (s) => [count(s.series.queued.at(-1)), 'for their turn now'],
  },
  {
    title: 'Errors a second', lines: [['errorsSmooth', 'bad'], ['refusedSmooth', 'second']], show: rate, floor: 1,
    now: (s) => [rate(s.series.rate('errors', 10)), errorNote(s.minute)],
  },
];

function hitNote(minute) {
  if (!minute?.requests) return 'no request in a minute';
  return minute.prompt_tokens ? 'of prompt tokens' : 'engines report none';
}

const errorNote = (minute) => (minute ? `${count(minute.errors)} failed, ${count(minute.refused)} refused` : none);

const times = (_, splits) => splits.map((s) => minuteOf(new Date(s * 1000)));

class Tile {
  constructor(kind) {
    this.kind = kind;
    this.value = h('p', { class: 'value' }, none);
    this.note = h('p', { class: 'note' });
    this.chartBox = h('div', { class: 'chart', role: 'img', 'aria-label': kind.title });
    this.element = h('div', { class: 'tile' }, h('h3', null, kind.title), this.value, this.note, this.chartBox);
    this.pointed = null; // the place in the series that the pointer is at
    this.state = null;
  }

  // draw makes the chart once its room is known.
  draw(series, width) {
    const axis = {
      stroke: () => colour('muted'), font, gap: 4, ticks: { show: false },
      grid: { stroke: () => colour('line'), width: 1 },
    };
    const { kind } = this;
    this.chart = new uPlot({
      width, height, pxAlign: 1, legend: { show: false },
      padding: [8, 18, 0, 0], // to the right half a label's width
      cursor: { y: false, drag: { x: false, y: false }, sync: { key: 'kvca' }, points: { size: 6, width: 0 } },
      scales: { y: { range: (_, low, high) => [0, kind.top ?? Math.max((high ?? 0) * 1.1, kind.floor)] } },
      axes: [
        { ...axis, size: 20, space: 56, values: times, grid: { show: false } },
        { ...axis, size: 52, space: 30, values: (_, splits) => splits.map(kind.show) },
      ],
      series: [{}, ...kind.lines.toReversed().map(([column, name]) => ({
        label: column, stroke: () => colour(name), width: 1.5, points: { show: false },
        fill: kind.lines.length === 1 ? () => colour(`${name}-wash`) : undefined,
      }))],
      hooks: { setCursor: [(u) => this.point(u.cursor.idx)] },
    }, this.data(series), this.chartBox);
  }

  data(series) {
    return [series.x, ...this.kind.lines.toReversed().map(([column]) => series[column])];
  }

  point(i) {
    this.pointed = i ?? null;
    if (this.state) this.say();
  }

  // say shows the figures of now, or of where the pointer is.
  say() {
    const { series } = this.state;
    if (this.pointed === null) {
      const [value, note] = this.kind.now(this.state);
      setText(this.value, value);
      setText(this.note, note);
      return;
    }
    const [first, ...rest] = this.kind.lines.map(([column]) => this.kind.show(series[column][this.pointed]));
    setText(this.value, first);
    setText(this.note, `at ${timeOf(new Date(series.x[this.pointed] * 1000))}${rest.map((r) => `; ${r}`).join('')}`);
  }

  update(state) {
    this.state = state;
    this.chart?.setData(this.data(state.series));
    if (this.pointed === null) setAttr(this.chartBox, 'aria-label', `${this.kind.title}, ten minutes; now ${this.kind.now(state).join(', ')}`);
    this.say();
  }
}

export class Tiles {
  constructor(series) {
    this.series = series;
    this.tiles = kinds.map((kind) => new Tile(kind));
    $('tiles').append(...this.tiles.map((tile) => tile.element));
    new ResizeObserver(() => this.fit()).observe($('tiles'));
    onTheme(() => this.tiles.forEach((tile) => tile.chart?.redraw(false, true)));
    this.minutes = table('Requests, times and shares by minute, the newest first', [
      { title: 'From' }, { title: 'Requests', num: true }, { title: 'Errors', num: true }, { title: 'TTFT p50', num: true },
      { title: 'p90', num: true }, { title: 'From cache', num: true }, { title: 'In flight, most', num: true }, { title: 'Waiting, most', num: true },
    ]);
    $('minutes').append(this.minutes.element);
    $('minutes').parentElement.addEventListener('toggle', () => this.fillMinutes());
  }

  fit() {
    for (const tile of this.tiles) {
      const width = tile.chartBox.clientWidth;
      if (!width) continue;
      if (!tile.chart) tile.draw(this.series, width);
      else if (tile.chart.width !== width) tile.chart.setSize({ width, height });
    }
  }

  update(minute) {
    const state = { series: this.series, minute };
    this.tiles.forEach((tile) => tile.update(state));
    if ($('minutes').parentElement.open) this.fillMinutes();
  }

  fillMinutes() {
    this.minutes.body.replaceChildren(...this.series.minutes().map((m) => h('tr', null,
      h('th', { scope: 'row' }, minuteOf(new Date(m.from * 1000))),
      [count(m.requests), count(m.errors), millis(m.p50), millis(m.p90), share(m.share), count(m.inFlight), count(m.queued)]
        .map((text) => h('td', { class: 'num' }, text)))));
  }
}
