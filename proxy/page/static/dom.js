// Elements without markup in strings: text is always text.

const SVG = 'http://www.w3.org/2000/svg';

export const $ = (id) => document.getElementById(id);

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name === 'on') {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else if (value === true) {
      element.setAttribute(name, '');
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const svg = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

// What is the same already is left alone, so that a second of quiet costs nothing.
export function setText(element, text) {
  text = String(text);
  if (element.textContent !== text) element.textContent = text;
}

export function setAttr(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value);
  }
}

export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

// keyed makes the children of parent those of items: made once a key, changed in
// place, in the order of items.
export function keyed(parent, items, key, make, change) {
  const had = parent.rowsByKey ?? new Map();
  const has = new Map();
  const wanted = new Set(items.map(key));
  for (const [k, row] of had) {
    if (!wanted.has(k)) row.remove();
  }
  let at = parent.firstElementChild;
  for (const item of items) {
    const k = key(item);
    const row = had.get(k) ?? make(item);
    change(row, item);
    has.set(k, row);
    if (row === at) {
      at = at.nextElementSibling;
    } else {
      parent.insertBefore(row, at);
    }
  }
  parent.rowsByKey = has;
}

// bar is a share from 0 to 1 as a drawn bar; its meaning stands beside it as text.
export function bar(kind = '') {
  const inner = svg('rect', { class: 'bar-fill', width: 0, height: 6, rx: 3 });
  return svg('svg', { class: `bar ${kind}`, 'aria-hidden': 'true', viewBox: '0 0 100 6', preserveAspectRatio: 'none' },
    svg('rect', { class: 'bar-rest', width: 100, height: 6, rx: 3 }), inner);
}

export function setBar(element, share) {
  const width = Number.isFinite(share) ? Math.round(Math.min(Math.max(share, 0), 1) * 100) : 0;
  setAttr(element.lastElementChild, 'width', width);
}

// table makes a table with a caption; columns have a title and, for numbers, num.
export function table(caption, columns, captionHidden = true) {
  const body = h('tbody');
  const element = h('table', null,
    h('caption', { class: captionHidden ? 'hidden' : '' }, caption),
    h('thead', null, h('tr', null, columns.map((c) => h('th', { scope: 'col', class: classOf(c) }, c.title)))),
    body);
  return { element, body };
}

// whole is the class of names that are short enough to stand on one line.
export const whole = (name) => ((name ?? '').length <= 24 ? 'whole' : null);

export const classOf = (column) => [column.num ? 'num' : '', column.minor ? 'minor' : '', column.class ?? ''].join(' ').trim() || null;

// facts fills a description list in place.
export function facts(list, pairs) {
  keyed(list, pairs, (p) => p[0],
    (p) => h('div', null, h('dt', null, p[0]), h('dd')),
    (row, p) => setText(row.lastElementChild, p[1]));
}
