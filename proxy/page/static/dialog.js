// The one dialog of the page. The browser keeps the focus inside and gives it back.

import { $, setText } from './dom.js';

const dialog = $('dialog');

$('dialog-close').addEventListener('click', () => dialog.close());
// The event comes late: by then the dialog may show something else.
dialog.addEventListener('close', () => dialog.open || $('dialog-body').replaceChildren());
// A click beside it closes it.
dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());

export function show(title, ...content) {
  open('', title, content);
}

// question is a small one.
export function question(title, ...content) {
  open('small', title, content);
}

function open(kind, title, content) {
  dialog.className = kind;
  setText($('dialog-title'), title);
  $('dialog-body').replaceChildren(...content);
  if (!dialog.open) dialog.showModal();
  $('dialog-title').focus();
}

export const close = () => dialog.close();
