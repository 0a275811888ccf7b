// A request body in, the decision out: what would be done now, and why.

import { ask, Refused } from './api.js';
import { candidateTable, factList, factsOf, rawJSON, sentence } from './decision.js';
import { $, h } from './dom.js';
import { count, plural } from './format.js';

const paths = [
  '/v1/chat/completions', '/v1/completions', '/v1/responses', '/v1/messages', '/v1/embeddings', '/v1/rerank', '/v1/score',
  '/v1/messages/count_tokens', '/tokenize', '/detokenize',
];

const text = 'Explain in a few sentences what a KV cache is, and why a request should go where its beginning has been before.';

// example is a body that the endpoint takes, of a model that there is.
function example(path, model) {
  switch (path) {
    case '/v1/completions': return { model, prompt: text };
    case '/v1/responses': return { model, input: text };
    case '/v1/messages':
    case '/v1/messages/count_tokens': return { model, max_tokens: 256, messages: [{ role: 'user', content: text }] };
    case '/v1/embeddings': return { model, input: [text] };
    case '/v1/rerank': return { model, query: 'KV cache', documents: [text] };
    case '/v1/score': return { model, text_1: 'KV cache', text_2: text };
    case '/tokenize': return { model, prompt: text };
    case '/detokenize': return { model, tokens: [1, 2, 3] };
    default: return { model, messages: [{ role: 'system', content: 'You are terse.' }, { role: 'user', content: text }] };
  }
}

export class Explain {
  constructor() {
    this.model = '';
    this.abort = null;
    $('endpoint').append(...paths.map((p) => h('option', null, p)));
    $('example').addEventListener('click', () => {
      $('request').value = JSON.stringify(example($('endpoint').value, this.model || 'MODEL'), null, 2);
      $('request').focus();
    });
    $('explain-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.go();
    });
    $('request').addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.go();
      }
    });
  }

  update(status) {
    this.model = status.backends.flatMap((b) => b.models ?? [])[0] ?? '';
  }

  async go() {
    const body = $('request').value;
    if (!body.trim()) {
      this.say(h('p', { class: 'fault' }, 'There is no request body yet: paste one, or take the example.'));
      $('request').focus();
      return;
    }
    this.abort?.abort(); // the answer to the last one no longer matters
    const abort = new AbortController();
    this.abort = abort;
    this.say(h('p', { class: 'note' }, 'Asking…'));
    try {
      const decision = await ask(`/explain?endpoint=${encodeURIComponent($('endpoint').value)}`, { method: 'POST', body, signal: abort.signal });
      if (this.abort === abort) this.show(decision);
    } catch (fault) {
      if (this.abort === abort) this.say(h('p', { class: 'fault' }, this.reasonOf(fault)));
    }
  }

  reasonOf(fault) {
    if (!(fault instanceof Refused)) return `The node did not answer: ${fault.message}`;
    if (fault.status === 401 || fault.status === 403) return 'The node asks for its admin token: see above.';
    return fault.code ? `${fault.message} (${fault.code})` : fault.message;
  }

  // say replaces what a screen reader is told; detail comes beside it, unannounced.
  say(what, ...detail) {
    $('explanation').replaceChildren(what);
    $('explanation-detail').replaceChildren(...detail);
  }

  show(d) {
    const records = Object.entries(d.cached_tokens ?? {});
    this.say(
      h('p', { class: 'sentence' }, sentence(d)),
      factList(factsOf(d)),
      h('h3', null, `${plural(d.candidates.length, 'candidate')}`),
      candidateTable(d),
      records.length ? h('p', { class: 'note' }, `The precise index has a record of predictions for ${count(records.length)} of them: see the JSON.`) : '',
      rawJSON(d),
    );
  }
}
