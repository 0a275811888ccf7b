// The page: asks the node once a second and shows what it says.

import { ask, askIfThere, setToken, token } from './api.js';
import { showAttention } from './attention.js';
import { Backends } from './backends.js';
import { Decisions } from './decisions.js';
import { $, setAttr, setHidden, setText } from './dom.js';
import { Explain } from './explain.js';
import { timeOf } from './format.js';
import { Limits } from './limits.js';
import { ClusterMap } from './map.js';
import { Poller } from './poll.js';
import { Series } from './series.js';
import { nextTheme, onTheme, theme } from './theme.js';
import { Tiles } from './tiles.js';

const series = new Series();
const tiles = new Tiles(series);
const decisions = new Decisions();
const explain = new Explain();
const limits = new Limits();
const backends = new Backends((locked) => (locked ? lock() : poller.now()));
const map = new ClusterMap((owner) => backends.find(`owner:${owner}`));

let status = null;
let minute = null;

// A status of a thousand backends is half a megabyte: it can be three seconds old.
const large = 300;
const statusIsDue = (turn) => !status || status.backends.length < large || turn % 3 === 0;

async function round(signal, turn) {
  const [live, recent, said] = await Promise.all([
    askIfThere(`/live?since=${series.newest}`, { signal }),
    askIfThere(decisions.path(), { signal }),
    statusIsDue(turn) ? ask('/cluster/status', { signal }) : null,
  ]);
  if (said) showStatus(said);
  if (live) showLive(live);
  if (recent) decisions.take(recent);
  showAttention(status, minute);
}

function showStatus(said) {
  status = said;
  setAttr(document.body, 'data-loaded', 'true');
  document.title = `${said.node} · KVCA`;
  setText($('node'), said.node);
  setText($('where'), `${said.cluster}, ${said.ready ? 'ready' : 'not ready'}`);
  setText($('version'), `KVCA ${said.version}`);
  backends.update(said);
  map.update(said);
  limits.update(said);
  explain.update(said);
}

function showLive(live) {
  minute = live.last_minute;
  series.take(live);
  tiles.update(minute);
  decisions.showReasons(minute);
}

const words = { live: 'Live', failing: 'No answer', locked: 'Token needed', paused: 'Paused' };

function tell(now) {
  setText($('connection'), words[now.state]);
  setAttr($('connection'), 'data-state', now.state);
  setAttr(document.body, 'data-stale', now.state === 'failing' && now.good ? 'true' : null);
  setHidden($('outage'), now.state !== 'failing');
  setHidden($('attention'), now.state === 'failing'); // what was well need not be
  setHidden($('loading'), now.state !== 'live' && now.state !== 'paused');
  setHidden($('login'), now.state !== 'locked');
  setHidden($('forget'), !token() || now.state === 'locked');
  if (now.state === 'failing') setText($('outage-text'), outage(now));
  if (now.state === 'locked') askForToken();
}

function outage({ good, since, tries, next }) {
  const who = status ? status.node : 'The node';
  const shown = good ? `What you see is from ${timeOf(good)}.` : 'Nothing is known yet.';
  return `${who} has not answered since ${timeOf(since)}. ${shown} Tried ${tries === 1 ? 'once' : `${tries} times`}, next at ${timeOf(next)}.`;
}

function askForToken() {
  setText($('login-note'), token() ? 'The node did not take this token.' : 'It stays in this tab until you close it.');
  setToken('');
}

// lock stops asking until there is a token.
function lock() {
  poller.stop('locked');
}

$('login').addEventListener('submit', (event) => {
  event.preventDefault();
  setToken($('token').value.trim());
  $('token').value = '';
  poller.now();
});
$('forget').addEventListener('click', () => {
  setToken('');
  poller.now();
});
$('retry').addEventListener('click', () => poller.now());

const showTheme = () => setText($('theme'), `Theme: ${theme()}`);
$('theme').addEventListener('click', nextTheme);
onTheme(showTheme);
showTheme();

const poller = new Poller(round, tell);
setAttr(document.body, 'data-started', 'true'); // late.js waits for it
if (!document.hidden) poller.now();
