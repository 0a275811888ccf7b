// Nodes, the links to them from here, and the backends that each owns: a square a
// backend, so that a node's share and its state are seen before they are read. Many
// backends of a node share a square.

import { $, h, keyed, setAttr, setHidden, setText, svg, table } from './dom.js';
import { count, millis, plural } from './format.js';

const pad = 10;
const headHeight = 38;
const gap = 12;
const sizes = [14, 12, 10, 8];
const spacing = 3;
const mostRows = 6;
const mostSquares = 640; // in all

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

// squaresOf groups a node's backends, each square as bad as its worst.
function squaresOf(backends, group) {
  const squares = [];
  for (let i = 0; i < backends.length; i += group) squares.push(backends.slice(i, i + group));
  return squares;
}

// squareSize is the greatest at which most squares fit into a few rows.
function squareSize(most, inner) {
  const fits = sizes.find((size) => Math.ceil(most / perRow(size, inner)) <= mostRows);
  return fits ?? sizes.at(-1);
}

const perRow = (size, inner) => Math.max(Math.floor((inner + spacing) / (size + spacing)), 1);

// layout places the boxes: this node above, its peers in rows below.
export function layout(boxes, width) {
  const total = boxes.reduce((sum, b) => sum + b.backends.length, 0);
  const group = Math.max(Math.ceil(total / mostSquares), 1);
  const peers = boxes.length - 1;
  const left = peers > 0 ? 16 : 0;
  const least = peers > 16 ? 112 : 150;
  const across = peers ? Math.min(Math.max(Math.floor((width - left + gap) / (least + gap)), 1), peers) : 1;
  const column = Math.floor((width - left + gap) / across) - gap;
  const boxWidth = peers ? Math.min(column, 320) : width;
  const inner = boxWidth - 2 * pad;
  const most = Math.max(...boxes.map((b) => Math.ceil(b.backends.length / group)), 1);
  const size = squareSize(most, inner);
  const heightOf = (b) => headHeight + Math.max(Math.ceil(Math.ceil(b.backends.length / group) / perRow(size, inner)), 1) * (size + spacing) + pad;

  const placed = [];
  const place = (box, x, y) => placed.push({ ...box, x, y, width: boxWidth, height: heightOf(box), squares: squaresOf(box.backends, group) });
  const rowWidth = across * (boxWidth + gap) - gap;
  const start = left + Math.max((width - left - rowWidth) / 2, 0);
  place(boxes[0], peers ? left + (width - left - boxWidth) / 2 : 0, 0);
  let y = placed[0].height + 2 * gap + 4;
  for (let i = 1; i < boxes.length; i += across) {
    const row = boxes.slice(i, i + across);
    row.forEach((box, at) => place(box, start + at * (boxWidth + gap), y));
    y += Math.max(...row.map(heightOf)) + 2 * gap;
  }
  const end = placed.reduce((low, p) => Math.max(low, p.y + p.height), 0);
  return { placed, group, size, inner, across, height: end + 2 };
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

const clip = (text, width) => (text.length * 7.4 > width ? `${text.slice(0, Math.max(Math.floor(width / 7.4) - 1, 1))}…` : text);

function drawBox(p, { size, inner, group }) {
  const columns = perRow(size, inner);
  const squares = p.squares.map((_, i) => svg('rect', {
    x: pad + (i % columns) * (size + spacing), y: headHeight + Math.floor(i / columns) * (size + spacing), width: size, height: size, rx: 2,
  }, svg('title')));
  const name = svg('text', { x: pad + 12, y: 17, class: 'name' }, clip(p.member.name, inner - 12));
  const state = svg('text', { x: pad, y: 31, class: 'state' });
  const box = svg('a', { class: 'node', href: '#backends', 'data-owner': p.member.name, transform: `translate(${p.x} ${p.y})` },
    svg('rect', { class: 'box', width: p.width, height: p.height, rx: 8 }),
    svg('circle', { class: 'lamp', cx: pad + 4, cy: 13, r: 4 }), name, state, ...squares);
  return { box, state, squares, owner: p.member.name, group };
}

const badness = { healthy: 0, starting: 1, draining: 2, unhealthy: 3 };

// paint gives squares and boxes the state of now, without making anything.
function paint(drawn, p, most) {
  const { member } = p;
  const owns = plural(p.backends.length, 'backend');
  setText(drawn.state, `${stateOf(member)} · ${count(p.backends.length)} owned`);
  setAttr(drawn.box, 'class', `node ${levelOf(member)}${member.link === 'self' ? ' self' : ''}`);
  setAttr(drawn.box, 'aria-label', `${member.name}: ${stateOf(member)}, owns ${owns}. Show them`);
  p.squares.forEach((list, i) => {
    const worst = list.reduce((a, b) => (badness[b.health] > badness[a.health] ? b : a));
    const active = list.reduce((sum, b) => sum + b.active, 0) / list.length;
    const level = active <= 0 ? 0 : Math.min(1 + Math.floor((active / most) * 3.99), 4);
    setAttr(drawn.squares[i], 'class', `square ${worst.health} l${level}`);
    const title = list.length === 1 ? `${worst.id}: ${worst.health}, ${count(worst.active)} active` : `${list[0].id} to ${list.at(-1).id}: worst is ${worst.health}, ${count(Math.round(active))} active each`;
    setText(drawn.squares[i].firstElementChild, title);
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
      { title: 'Owns', num: true }, { title: 'Holds', num: true }, { title: 'Divergence', num: true }, { title: 'Address' }, { title: 'Differs in' },
    ]);
    $('members').append(this.members.element);
  }

  update(status) {
    this.last = status;
    const width = $('map').clientWidth;
    if (!width) return;
    const boxes = owned(status);
    const plan = layout(boxes, width);
    const shape = JSON.stringify([width, plan.group, boxes.map((b) => [b.member.name, b.backends.map((x) => x.id)])]);
    const links = boxes.map((b) => linkClass(b.member)).join();
    if (shape !== this.shape) this.draw(plan, width);
    else if (links !== this.links) this.svg.querySelector('.wires').replaceChildren(...wires(plan));
    this.shape = shape;
    this.links = links;
    const most = Math.max(...status.backends.map((b) => b.active), 1);
    plan.placed.forEach((p, i) => paint(this.drawn[i], p, most));
    setHidden($('grouped'), plan.group === 1);
    setText($('grouped'), `a square stands for ${plan.group} backends, the worst of them shown`);
    setText($('cluster-note'), noteOf(status));
    this.showMembers(status);
  }

  draw(plan, width) {
    this.drawn = plan.placed.map((p) => drawBox(p, plan));
    setAttr(this.svg, 'viewBox', `0 0 ${width} ${plan.height}`);
    setAttr(this.svg, 'height', plan.height);
    this.svg.replaceChildren(svg('g', { class: 'wires', 'aria-hidden': 'true' }, wires(plan)), ...this.drawn.map((d) => d.box));
  }

  showMembers(status) {
    keyed(this.members.body, status.members, (m) => m.name,
      (m) => h('tr', null, h('th', { scope: 'row' }, m.name), ['', '', 'num', 'num', 'num', 'num', 'num', '', ''].map((c) => h('td', { class: c || null }))),
      (row, m) => [
        m.state + (m.ready ? '' : ', not ready'), m.link + (m.dirty ? ', repairing' : ''), m.link === 'self' ? '' : millis(m.rtt_ms), m.link === 'self' ? '' : millis(m.lag_ms),
        count(m.owned), count(m.held), m.link === 'self' ? '' : count(status.divergence?.[m.name] ?? 0), m.address, m.differs,
      ].forEach((text, i) => setText(row.cells[i + 1], text ?? '')));
  }
}

function noteOf(status) {
  const alive = status.members.filter((m) => m.state === 'alive').length;
  const of = status.members.length === 1 ? 'One node' : `${count(alive)} of ${plural(status.members.length, 'node')} alive`;
  return `${of}, ${plural(status.backends.length, 'backend')}. A box is a node with the backends that it owns.`;
}
