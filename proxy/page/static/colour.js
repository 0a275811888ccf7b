// Colours of the style sheet for what is drawn on a canvas, which knows no variables.

import { h } from './dom.js';
import { onTheme } from './theme.js';

const probe = h('span', { hidden: true });
document.body.append(probe);

const known = new Map();
onTheme(() => known.clear());

export function colour(name) {
  let value = known.get(name);
  if (!value) {
    probe.style.color = `var(--${name})`;
    value = getComputedStyle(probe).color;
    known.set(name, value);
  }
  return value;
}
