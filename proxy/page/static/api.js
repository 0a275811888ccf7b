// Requests to the node that served the page, and to nobody else.

const key = 'kvca-token';
const deadline = 8000; // ms

let kept = '';
try {
  kept = sessionStorage.getItem(key) ?? '';
} catch { /* storage may be refused: the token then lasts as long as the page */ }

export const token = () => kept;

export function setToken(value) {
  kept = value;
  try {
    if (value) sessionStorage.setItem(key, value);
    else sessionStorage.removeItem(key);
  } catch { /* as above */ }
}

// Refused is an answer that is none of 2xx; its message is the node's own.
export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function refusal(response) {
  let fault = null;
  try {
    fault = (await response.json()).error;
  } catch { /* not of the node's own making, or cut short */ }
  return new Refused(response.status, fault?.code ?? '', fault?.message ?? `The node answered ${response.status} ${response.statusText}.`);
}

export async function ask(path, { method = 'GET', body, signal } = {}) {
  const headers = {};
  if (kept) headers.Authorization = `Bearer ${kept}`;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const timely = AbortSignal.timeout(deadline);
  const response = await fetch(path, {
    method, headers, body, cache: 'no-store', credentials: 'same-origin', redirect: 'error',
    signal: signal ? AbortSignal.any([signal, timely]) : timely,
  });
  if (!response.ok) throw await refusal(response);
  return response.status === 204 ? null : response.json();
}

// askIfThere is null where the node has no such path.
export async function askIfThere(path, options) {
  try {
    return await ask(path, options);
  } catch (fault) {
    if (fault instanceof Refused && fault.status === 404) return null;
    throw fault;
  }
}
