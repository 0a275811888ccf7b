// Nodes, the links to them from here, and the backends that each owns. A few backends
// are drawn by name; many as a square each, so that a node's share and its state are
// seen before they are read; very many share squares.

import { $, h, keyed, setAttr, setHidden, setText, svg, table, whole } from './dom.js';
import { count, millis, plural } from './format.js';

const pad = 10;
const headHeight = 38;
const gap = 12;
const mostNamed = 48; // backends that are drawn by name, in all
const mostSquares = 640; // in all
const mostRows = 6; // of squares in a box, before they shrink
const sizes = [14, 12, 10, 8];

// owned puts backends in the order of nodes; those without an owner in sight come
// under the name that the status gives.
function owned(status) {
  const boxes = new Map(status.members.map((m) => [m.name, { member: m, backends: [] }]));
  for (const b of status.backends) {
    if (!boxes.has(b.owner)) boxes.set(b.owner, { member: { name: b.owner || 'nobody', state: 'unknown', link: '' }, backends: [] });
    boxes.get(b.owner).backends.push(b);
  }
  return [...boxes.values()];
}

// groupsOf are a node's backends by the cell that stands for them.
function groupsOf(backends, group) {
  const groups = [];
  for (let i = 0; i < backends.length; i += group) groups.push(backends.slice(i, i + group));
  return groups;
}

const grid = (width, height, space, inner) => ({ width, height, space, columns: Math.max(Math.floor((inner + space) / (width + space)), 1) });

// gridOf is how a box lays out its backends: by name where all together are few, else
// in the greatest squares that fit into a few rows.
function gridOf(total, most, inner) {
  if (total <= mostNamed && inner >= 110) {
    const columns = Math.max(Math.floor((inner + 6) / 130), 1);
    return { ...grid((inner + 6) / columns - 6, 22, 6, inner), columns, named: true };
  }
  const fits = sizes.map((size) => grid(size, size, 3, inner)).find((g) => Math.ceil(most / g.columns) <= mostRows);
  return fits ?? grid(sizes.at(-1), sizes.at(-1), 3, inner);
}

// layout places the boxes: this node above, its peers in rows below.
export function layout(boxes, width) {
  const total = boxes.reduce((sum, b) => sum + b.backends.length, 0);
  const group = Math.max(Math.ceil(total / mostSquares), 1);
  const peers = boxes.length - 1;
  const left = peers > 0 ? 16 : 0;
  const least = peers > 16 ? 96 : 150;
  const across = peers ? Math.min(Math.max(Math.floor((width - left + gap) / (least + gap)), 1), peers) : 1;
  const column = Math.floor((width - left + gap) / across) - gap;
  const boxWidth = peers ? Math.min(column, 320) : width;
  const cellsOf = (b) => Math.ceil(b.backends.length / group);
  const cells = gridOf(total, Math.max(...boxes.map(cellsOf), 1), boxWidth - 2 * pad);
  const heightOf = (b) => headHeight + Math.max(Math.ceil(cellsOf(b) / cells.columns), 1) * (cells.height + cells.space) + pad - 2;

  const placed = [];
  const place = (box, x, y) => placed.push({ ...box, x, y, width: boxWidth, height: heightOf(box), groups: groupsOf(box.backends, group) });
  const start = left + Math.max((width - left - across * (boxWidth + gap) + gap) / 2, 0);
  place(boxes[0], peers ? left + (width - left - boxWidth) / 2 : 0, 0);
  let y = placed[0].height + 2 * gap;
  for (let i = 1; i < boxes.length; i += across) {
    const row = boxes.slice(i, i + across);
    row.forEach((box, at) => place(box, start + at * (boxWidth + gap), y));
    y += Math.max(...row.map(heightOf)) + 2 * gap;
  }
  return { placed, group, cells, across, height: Math.max(...placed.map((p) => p.y + p.height)) + 2 };
}

const linkClass = (m) => (m.state !== 'alive' || m.link === 'down' ? 'link down' : m.dirty ? 'link dirty' : 'link');

// wires draws what leads from this node to its peers: down, along, and to each.
function wires({ placed, across }) {
  const [self, ...peers] = placed;
  const drawn = [];
  const path = (kind, d) => drawn.push(svg('path', { class: kind, d }));
  for (let i = 0; i < peers.length; i += across) {
    const row = peers.slice(i, i + across);
    const bus = row[0].y - gap;
    const middles = row.map((p) => p.x + p.width / 2);
    if (i === 0) {
      const x = self.x + self.width / 2;
      path('link trunk', `M${x} ${self.height}V${bus}`);
      const from = peers.length > across ? 4 : Math.min(x, ...middles);
      path('link trunk', `M${from} ${bus}H${Math.max(x, ...middles)}`);
    } else {
      path('link trunk', `M4 ${peers[i - across].y - gap}V${bus}H${middles.at(-1)}`);
    }
    row.forEach((p, at) => path(linkClass(p.member), `M${middles[at]} ${bus}V${p.y}`));
  }
  return drawn;
}

function stateOf(m) {
  if (m.link === 'self') return m.ready ? 'this node' : 'this node, not ready';
  if (m.state !== 'alive') return m.state;
  if (m.link === 'down') return 'link down';
  if (m.dirty) return 'repairing';
  return m.ready ? millis(m.rtt_ms) : 'not ready';
}

const levelOf = (m) => (m.link === 'self' ? (m.ready ? 'good' : 'bad') : m.state !== 'alive' || m.link === 'down' ? 'bad' : m.dirty || !m.ready ? 'warn' : 'good');

// Text in an SVG is not cut by itself; a letter is about this wide.
const letter = 7.4;
const clip = (text, width) => (text.length * letter > width ? `${text.slice(0, Math.max(Math.floor(width / letter) - 1, 1))}…` : text);

function drawSquare(x, y, cells) {
  return svg('rect', { x, y, width: cells.width, height: cells.height, rx: 2 }, svg('title'));
}

function drawNamed(x, y, cells, [backend]) {
  return svg('g', { transform: `translate(${x} ${y})` }, svg('title'),
    svg('rect', { class: 'chip', width: cells.width, height: cells.height, rx: 4 }),
    svg('rect', { class: 'chip-level', height: cells.height, rx: 4 }),
    svg('text', { class: 'chip-name', x: 7, y: 15 }, clip(backend.id, cells.width - 38)),
    svg('text', { class: 'chip-count', x: cells.width - 7, y: 15 }));
}

function drawBox(p, { cells }) {
  const at = (i) => [pad + (i % cells.columns) * (cells.width + cells.space), headHeight + Math.floor(i / cells.columns) * (cells.height + cells.space)];
  const drawn = p.groups.map((list, i) => (cells.named ? drawNamed(...at(i), cells, list) : drawSquare(...at(i), cells)));
  const state = svg('text', { x: pad, y: 31, class: 'state' });
  const box = svg('a', { class: 'node', href: '#backends', 'data-owner': p.member.name, transform: `translate(${p.x} ${p.y})` },
    svg('rect', { class: 'box', width: p.width, height: p.height, rx: 8 }),
    svg('circle', { class: 'lamp', cx: pad + 4, cy: 13, r: 4 }),
    svg('text', { x: pad + 13, y: 17, class: 'name' }, clip(p.member.name, p.width - 2 * pad - 13)), ' ', state,
    svg('g', { 'aria-hidden': 'true' }, drawn));
  return { box, state, cells: drawn };
}

const badness = { healthy: 0, starting: 1, draining: 2, unhealthy: 3 };

// paint gives boxes and cells the state of now, without making anything.
function paint(drawn, p, most, { named, width }) {
  const { member } = p;
  const owned = p.width < 130 ? count(p.backends.length) : `${count(p.backends.length)} owned`;
  setText(drawn.state, `${stateOf(member)} · ${owned}`);
  setAttr(drawn.box, 'class', `node ${levelOf(member)}${member.link === 'self' ? ' self' : ''}`);
  p.groups.forEach((list, i) => {
    const worst = list.reduce((a, b) => (badness[b.health] > badness[a.health] ? b : a));
    const active = list.reduce((sum, b) => sum + b.active, 0) / list.length;
    const cell = drawn.cells[i];
    const title = list.length === 1 ? `${worst.id}: ${worst.health}, ${count(worst.active)} active`
      : `${list[0].id} to ${list.at(-1).id}: worst is ${worst.health}, ${count(Math.round(active))} active each`;
    setText(cell.firstElementChild, title);
    if (named) {
      setAttr(cell, 'class', `cell ${worst.health}`);
      setAttr(cell.children[2], 'width', Math.round((active / most) * width));
      setText(cell.lastElementChild, worst.health === 'healthy' ? count(active) : worst.health);
      return;
    }
    const level = active <= 0 ? 0 : Math.min(1 + Math.floor((active / most) * 3.99), 4);
    setAttr(cell, 'class', `square ${worst.health} l${level}`);
  });
}

export class ClusterMap {
  // choose is told which node's backends to show.
  constructor(choose) {
    this.shape = '';
    this.drawn = [];
    this.svg = svg('svg', { role: 'group', 'aria-label': 'Map of the cluster', preserveAspectRatio: 'xMinYMin' });
    $('map').append(this.svg);
    $('map').addEventListener('click', (event) => {
      const box = event.target.closest('.node');
      if (box) choose(box.dataset.owner);
    });
    new ResizeObserver(() => this.last && this.update(this.last)).observe($('map'));
    this.members = table('Nodes of the cluster as this one sees them', [
      { title: 'Node' }, { title: 'State' }, { title: 'Link' }, { title: 'Round trip', num: true }, { title: 'Lag', num: true },
      { title: 'Owns', num: true }, { title: 'Holds', num: true }, { title: 'Divergence', num: true }, { title: 'Differs in' },
    ]);
    $('members').append(this.members.element);
  }

  update(status) {
    if (!this.last) $('members').parentElement.open = status.members.length <= 8;
    this.last = status;
    const width = $('map').clientWidth - 4; // room for a focus ring
    if (width <= 0) return;
    const boxes = owned(status);
    const plan = layout(boxes, width);
    const shape = JSON.stringify([width, plan.group, boxes.map((b) => [b.member.name, b.backends.map((x) => x.id)])]);
    const links = boxes.map((b) => linkClass(b.member)).join();
    if (shape !== this.shape) this.draw(plan, width);
    else if (links !== this.links) this.svg.querySelector('.wires').replaceChildren(...wires(plan));
    this.shape = shape;
    this.links = links;
    const most = Math.max(...status.backends.map((b) => b.active), 1);
    plan.placed.forEach((p, i) => paint(this.drawn[i], p, most, plan.cells));
    setHidden($('legend'), plan.cells.named);
    setHidden($('grouped'), plan.group === 1);
    setText($('grouped'), `a square stands for ${plan.group} backends, the worst of them shown`);
    setText($('cluster-note'), noteOf(status));
    this.showMembers(status);
  }

  draw(plan, width) {
    this.drawn = plan.placed.map((p) => drawBox(p, plan));
    setAttr(this.svg, 'viewBox', `-2 -2 ${width + 4} ${plan.height + 4}`);
    setAttr(this.svg, 'height', plan.height + 4);
    this.svg.replaceChildren(svg('g', { class: 'wires', 'aria-hidden': 'true' }, wires(plan)), ...this.drawn.map((d) => d.box));
  }

  showMembers(status) {
    const figures = ['', '', 'num', 'num', 'num', 'num', 'num', ''];
    const ofPeer = (m, text) => (m.link === 'self' ? '' : text);
    keyed(this.members.body, status.members, (m) => m.name,
      (m) => h('tr', null,
        h('th', { scope: 'row' }, h('span', { class: whole(m.name) }, m.name), h('span', { class: 'address' })), figures.map((c) => h('td', { class: c || null }))),
      (row, m) => {
        setText(row.cells[0].lastElementChild, m.address);
        [
          m.state + (m.ready ? '' : ', not ready'), m.link + (m.dirty ? ', repairing' : ''), ofPeer(m, millis(m.rtt_ms)), ofPeer(m, millis(m.lag_ms)),
          count(m.owned), count(m.held), ofPeer(m, count(status.divergence?.[m.name] ?? 0)), m.differs,
        ].forEach((text, i) => setText(row.cells[i + 1], text ?? ''));
      });
  }
}

function noteOf(status) {
  const alive = status.members.filter((m) => m.state === 'alive').length;
  const of = status.members.length === 1 ? 'One node' : `${count(alive)} of ${plural(status.members.length, 'node')} alive`;
  return `${of}, ${plural(status.backends.length, 'backend')}. A box is a node with the backends that it owns.`;
}
