// Light, dark, or what the system says. Loaded before the first paint.

const key = 'kvca-theme';
const order = ['auto', 'light', 'dark'];
const root = document.documentElement;
const listeners = [];

function stored() {
  try {
    const value = localStorage.getItem(key);
    return order.includes(value) ? value : 'auto';
  } catch {
    return 'auto'; // storage may be refused: the choice then lasts as long as the page
  }
}

let choice = stored();
root.dataset.theme = choice;

export const theme = () => choice;

// nextTheme goes round auto, light and dark.
export function nextTheme() {
  choice = order[(order.indexOf(choice) + 1) % order.length];
  root.dataset.theme = choice;
  try {
    localStorage.setItem(key, choice);
  } catch { /* as above */ }
  listeners.forEach((tell) => tell());
}

// onTheme is told whenever colours changed, by choice or by the system.
export const onTheme = (tell) => listeners.push(tell);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => listeners.forEach((tell) => tell()));
