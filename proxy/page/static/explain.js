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

// A prompt shorter than a block (512 bytes) is not looked for in caches: examples have some.
const background = [
  'While a model reads a prompt it computes a key and a value for each token and layer, and keeps them: the KV cache. Each further token is made from them, so what was read once need not be read again while they are there.',
  'The keys and values of a token depend on all that comes before it and on nothing that follows. So two prompts that begin alike share them as far as they are alike, and not beyond the first difference.',
  'Chats repeat themselves: each turn sends the whole conversation again, and many conversations share a system prompt, a document, or the descriptions of tools. Most of a prompt has then been computed before, on the one server that served the last turn.',
  'A gateway that knows nothing of caches spreads requests evenly, and most of them to servers that have to compute everything anew. One that follows caches alone sends everyone to the same server. What is wanted is in between: a cost for the work that is left to do, and a cost for the queue in front of it.',
  'The cache is bounded. What was not used for long makes room for what is new, and when an engine restarts everything is gone, so what a gateway believes has to be held against what engines say.',
].join('\n\n');

const documents = `Answer from these notes.\n\n${background}`;

// example is a body that the endpoint takes, of a model that there is.
function example(path, model) {
  switch (path) {
    case '/v1/completions': return { model, prompt: `${documents}\n\n${text}` };
    case '/v1/responses': return { model, instructions: documents, input: text };
    case '/v1/messages':
    case '/v1/messages/count_tokens': return { model, max_tokens: 256, system: documents, messages: [{ role: 'user', content: text }] };
    case '/v1/embeddings': return { model, input: [text] };
    case '/v1/rerank': return { model, query: 'KV cache', documents: [text] };
    case '/v1/score': return { model, text_1: 'KV cache', text_2: text };
    case '/tokenize': return { model, prompt: text };
    case '/detokenize': return { model, tokens: [1, 2, 3] };
    default: return { model, messages: [{ role: 'system', content: documents }, { role: 'user', content: text }] };
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
