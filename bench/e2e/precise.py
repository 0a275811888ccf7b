"""Part C: two gateway nodes that are told by two real engines what these hold, and whether that is so."""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

import httpx2 as httpx
import openai

from checks import Checks, fetch, until, want
from engine import BLOCK, MODEL, TOPICS, Engine, Load, Turn, question
from node import Node, Process, Wire

KINDS = ("plain", "system", "tools", "follow-up", "salted", "ids")
SEED = 6
CACHE = 1024 * BLOCK  # tokens, as run.sh starts the engines
FORGETS = 5  # seconds without a connection after which a source is forgotten

SYSTEMS = [
    f"You are the keeper of the light at {place}. Answer like a log book, in short lines, with the hour before each. " * 12
    for place in ("Skerryvore", "Ushant", "Fastnet", "Bell Rock")
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Reads the {what} at a station, as the keeper noted it that day, in the unit that is asked for.",
            "parameters": {
                "type": "object",
                "properties": {
                    "station": {"type": "string"},
                    "day": {"type": "integer"},
                    "unit": {"type": "string", "enum": ["old", "new"]},
                },
                "required": ["station", "day"],
            },
        },
    }
    for name, what in (("read_barometer", "air pressure"), ("read_wind", "wind"), ("read_tide", "height of the tide"))
]


def call_of(name, station):
    """A tool's call and its result, as a client that has called it repeats them."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps({"station": station, "day": 7})}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": '{"value": 1013, "unit": "old", "remarks": "steady, falling towards night"}'},
    ]


class Seen:
    """One answer: what the index had predicted of the backend that was chosen, and what the engine reports."""

    def __init__(self, kind, node, turn, body):
        self.kind, self.node, self.backend, self.body = kind, node.name, turn.backend, body
        self.predicted = None if turn.predicted is None else int(turn.predicted)
        self.fallback, self.reported = turn.fallback, turn.cached
        self.prompt = turn.usage.prompt_tokens

    @property
    def right(self):
        return self.predicted == self.reported


class Whole:
    """A completion of token ids: its length in blocks is known here. Answers have what Turn has."""

    def __init__(self, base, ids):
        answer = httpx.post(base + "/v1/completions", json={"model": MODEL, "prompt": ids, "max_tokens": 1, "temperature": 0}, timeout=60)
        want(answer.status_code == 200, answer.text[:300])
        self.backend, self.fallback = answer.headers.get("X-KVCA-Backend"), answer.headers.get("X-KVCA-Fallback")
        self.predicted = answer.headers.get("X-KVCA-Predicted-Tokens")
        self.usage = openai.types.CompletionUsage.model_validate(answer.json()["usage"])
        self.cached = self.usage.prompt_tokens_details.cached_tokens or 0


def chat_body(messages, **more):
    return {"model": MODEL, "messages": messages, "temperature": 0, **more}


class Talk:
    """Makes the requests of the kinds and keeps what was seen of each."""

    def __init__(self, nodes, seed, unheard=()):
        self.nodes, self.random, self.seen, self.lock = nodes, random.Random(seed), [], threading.Lock()
        self.unheard = unheard  # backends that the index is told nothing of
        self.clients = {n.name: openai.OpenAI(base_url=n.base + "/v1", api_key="none", timeout=60, max_retries=0) for n in nodes}

    def pick(self, *of):
        with self.lock:
            return self.random.choice(of)

    def chat(self, kind, messages, **more):
        node, stream = self.pick(*self.nodes), self.pick(True, False)
        turn = Turn(self.clients[node.name], messages, stream, self.pick(4, 24, 40), **more)
        return self.note(Seen(kind, node, turn, chat_body(messages, **more))), turn

    def note(self, seen):
        with self.lock:
            self.seen.append(seen)
        if not seen.right and seen.backend not in self.unheard:
            print(
                f"e2e: {seen.kind} at {seen.node} on {seen.backend}: predicted {seen.predicted} ({seen.fallback}), reported {seen.reported} "
                f"of {seen.prompt}: {json.dumps(seen.body)[-160:]}", file=sys.stderr, flush=True,
            )
        return seen

    def plain(self):
        topic = self.pick(*TOPICS)
        self.chat("plain", [{"role": "user", "content": question(topic, self.pick(1, 2)) + self.pick("", question(topic, 3))}])

    def system(self):
        system = {"role": "system", "content": self.pick(*SYSTEMS)}
        self.chat("system", [system, {"role": "user", "content": question(self.pick(*TOPICS), self.pick(1, 2, 3))}])

    def tools(self):
        topic = self.pick(*TOPICS[:4])
        messages = [{"role": "user", "content": question(topic, self.pick(1, 2))}]
        if self.pick(True, False):
            messages += [*call_of(self.pick("read_wind", "read_tide"), topic), {"role": "user", "content": "And what follows from it?"}]
        self.chat("tools", messages, tools=TOOLS[: self.pick(2, 3)])

    def salted(self):
        messages = [{"role": "system", "content": SYSTEMS[0]}, {"role": "user", "content": question(self.pick(*TOPICS[:3]), 1)}]
        self.chat("salted", messages, cache_salt=self.pick("red", "green"))

    def ids(self):
        """Whole blocks: the engine computes the last one again, however often it was asked."""
        node, blocks, start = self.pick(*self.nodes), self.pick(2, 3, 8), self.pick(1000, 2000, 3000)
        ids = list(range(start, start + blocks * BLOCK + self.pick(0, 0, 1, 17)))
        self.note(Seen("ids", node, Whole(node.base, ids), {"prompt": [ids[0], len(ids)]}))

    def conversation(self, own, turns=4, **more):
        """Turns with the engine's own answers between them; own makes the beginning one that nobody else uses."""
        topic = self.pick(*TOPICS)
        messages = [{"role": "system", "content": f"Log {own}. " + self.pick(*SYSTEMS)}]
        for n in range(turns):
            messages.append({"role": "user", "content": question(topic, n)})
            _, turn = self.chat("follow-up" if n else "system", messages, **more)
            messages.append({"role": "assistant", "content": turn.text or "."})

    def figures(self, of=None):
        of = self.seen if of is None else of
        return f"{sum(s.right for s in of)} of {len(of)}"


class Checked:
    def __init__(self, args):
        self.args = args
        self.engines = {n: Engine(n, u) for n, u in (e.split("=", 1) for e in args.engine)}
        self.events = {n: tuple(map(int, p.split(","))) for n, p in (e.split("=", 1) for e in args.events)}
        self.processes = {n: Process(args.work, n) for n in self.engines}
        self.nodes, self.wires, self.talk = [], {}, None

    # --- phases ---------------------------------------------------------------------------------------------------------------------

    def begin(self):
        """Each node reads the events of b through wires of its own; the second asks engine a where its events are."""
        for name in self.engines:  # something to tell of
            self.direct(name, range(500, 500 + 4 * BLOCK))
        n1, n2 = (Node(self.args.work, n, self.args.kvca) for n in ("n1", "n2"))
        self.nodes, self.talk = [n1, n2], Talk([n1, n2], SEED)
        for n in self.nodes:
            self.wires[n.name] = [Wire(p) for p in self.events["b"]]
        a, b = self.events["a"], {n: ",".join(f"tcp://127.0.0.1:{w.port}" for w in wires) for n, wires in self.wires.items()}
        backends = [f"--backend={e.name}={e.url}" for e in self.engines.values()]
        at = f"tcp://127.0.0.1:{a[0]},tcp://127.0.0.1:{a[1]}"
        n1.run(*backends, f"--events=a={at}", f"--events=b={b['n1']}", f"--tokenizer={self.args.model}")
        n2.run(*backends, "--events=a=auto", f"--events=b={b['n2']}", "--token-budget=250ms", f"--join=127.0.0.1:{n1.gossip}")
        for n in self.nodes:
            n.ready()

    def live(self, node):
        sources = node.sources()
        return all(n in sources and sources[n]["state"] == "live" and sources[n]["by"] == "events" for n in self.engines) and sources

    def started(self):
        self.begin()
        took = []
        for n in self.nodes:
            until(lambda: self.live(n), 10, f"{n.name}: not all sources are live: {n.sources()}")
            took.append(time.monotonic() - n.begun)
        sizes = {s["block_size"] for n in self.nodes for s in self.live(n).values()}
        want(sizes == {BLOCK}, "block sizes", sizes)
        want(max(took) < 10, took)
        blocks = {n.name: {b: s["blocks"] for b, s in n.sources().items()} for n in self.nodes}
        return (
            f"live {took[0]:.1f} s and {took[1]:.1f} s after the nodes' start; block size {BLOCK}; blocks from replays {blocks}; "
            "n2 found a's by asking it"
        )

    def tokenizers(self):
        found = []
        for n in self.nodes:
            _, known = until(lambda: [t for t in n.admin.status()["index"]["tokenizers"] if t["way"]], 10, f"{n.name}: no tokenizer")
            found.append(f"{n.name}: {known[0]['way']} {known[0]['ways']} {known[0]['problem']}")
        want("local" in found[0], found)
        return "; ".join(found)

    def alone(self):
        """One request after another, so that nothing changes between a decision and its prefill."""
        talk = self.talk
        for n in range(35):
            for kind in (talk.plain, talk.system, talk.tools, talk.salted, talk.ids):
                kind()
            if n % 5 == 0:
                talk.conversation(f"alone {n}", cache_salt=talk.pick("red", "green")) if n % 10 else talk.conversation(f"alone {n}")
        want(len(talk.seen) >= 200, len(talk.seen), "requests")
        return self.share(talk.seen)

    def together(self):
        """Conversations at once, each with a beginning of its own: what one stores does not change what is right for another."""
        before = len(self.talk.seen)
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda i: self.talk.conversation(f"together {i}"), range(12)))
        these, seen = self.talk.seen[before:], self.talk.seen
        off = [(s.kind, s.node, s.predicted, s.reported) for s in these if s.predicted is not None and not s.right]
        figures = f"{self.figures(these)}; said otherwise {off}; in all {self.talk.figures(seen)}, {100 * sum(s.right for s in seen) / len(seen):.1f} %"
        # A turn may be decided before the engine's word on the last one is there: then its end is not counted on, and nothing else.
        want(all(0 < reported - predicted <= BLOCK for _, _, predicted, reported in off), figures)
        want(sum(s.right for s in these) >= 0.9 * len(these), figures)
        return figures

    def share(self, seen):
        """At least 99 % of what the index says is so. It may say nothing, or know a beginning only: where a renderer is late on a busy
        machine. The node with a tokenizer of its own has no such reason."""
        figures = self.figures(seen)
        said = [s for s in seen if s.predicted is not None]
        own = [s for s in seen if s.node == self.nodes[0].name]
        want(sum(s.right for s in said) >= 0.99 * len(said), figures)
        want(sum(s.right for s in own) >= 0.99 * len(own), figures)
        return figures

    def figures(self, seen):
        of = defaultdict(list)
        for s in seen:
            of[s.kind].append(s)
            of["at " + s.node].append(s)
        said = [s for s in seen if s.predicted is not None]
        unsaid = Counter(f"{s.fallback or 'a beginning only'} at {s.node}" for s in seen if s.predicted is None)
        tokens = sum(s.reported for s in seen) / sum(s.prompt for s in seen)
        return f"{self.talk.figures(seen)} as predicted ({', '.join(f'{k} {self.talk.figures(v)}' for k, v in sorted(of.items()))}); " + (
            f"of those with a prediction {self.talk.figures(said)}, without one {dict(unsaid)}; {100 * tokens:.0f} % of prompt tokens cached; "
            f"on {dict(Counter(s.backend for s in seen))}"
        )

    def alike(self):
        """Both nodes know the same of each backend."""
        bodies, differ = self.talk.random.sample([s.body for s in self.talk.seen if "messages" in s.body], 40), []
        held = 0
        for body in bodies:
            matched = [{c["backend"]: (c["matched_blocks"], c["index"]) for c in n.explain(body)["candidates"]} for n in self.nodes]
            held += any(m for m, _ in matched[0].values())
            if matched[0] != matched[1]:
                differ.append(matched)
        want(not differ and held > 30, f"{len(differ)} differ, {held} held:", differ[:3])
        return f"{len(bodies)} bodies explained by both: the same blocks on each backend; {held} of them held somewhere"

    # --- what changes an engine's cache ----------------------------------------------------------------------------------------------

    def direct(self, name, ids):
        return Whole(self.engines[name].url, list(ids))

    def believed(self, name, ids, node=None):
        """Cached tokens of a prompt on a backend, as the index has it."""
        decision = (node or self.nodes[0]).explain({"model": MODEL, "prompt": list(ids), "max_tokens": 1}, "/v1/completions")
        candidate = next(c for c in decision["candidates"] if c["backend"] == name)
        want(candidate["index"] in ("index", "unheard"), decision)
        return candidate["matched_blocks"] * BLOCK

    def agree(self, name, ids):
        """Every node believes of a prompt what the engine then reports."""
        believed = [self.believed(name, ids, n) for n in self.nodes]
        cached = self.direct(name, ids).cached
        want(believed == [cached] * len(believed), f"believed {believed}, {name} reports {cached}")
        return cached

    def right(self, requests=6):
        """Requests through the nodes are predicted right."""
        before = len(self.talk.seen)
        for _ in range(requests // 2):
            self.talk.ids()
            self.talk.system()
        seen = self.talk.seen[before:]
        want(all(s.right for s in seen), [(s.kind, s.backend, s.predicted, s.fallback, s.reported) for s in seen])
        return f"{len(seen)} requests predicted right"

    def evicted(self):
        """Strangers fill the cache of a, past the gateway, until they push a part of a prompt out of it."""
        ids, trail = range(5000, 5000 + 20 * BLOCK + 5), []
        self.direct("a", ids)
        until(lambda: self.believed("a", ids) == 20 * BLOCK, 2, "the prompt is not known")
        # Nine tenths of the cache at once, then in steps that are shorter than the prompt.
        for n, step in enumerate([3800] * (9 * CACHE // 38000) + [12 * BLOCK] * 40):
            self.direct("a", [100000 + (i * 7 + n * 3907) % 40000 for i in range(step)])
            believed = self.settled("a", ids)
            if believed < 20 * BLOCK:
                trail.append((n, believed))
            if believed not in (0, 20 * BLOCK):
                trail.append(f"the engine then reports {self.agree('a', ids)}")
                break
            want(believed, "the prompt went at once:", trail)
        want(trail, "nothing was evicted")
        return (
            f"after {trail[0][0] + 1} prompts of others {trail[0][1]} of {20 * BLOCK} tokens are believed, by both; {trail[-1]}; {self.right()}"
        )

    def settled(self, name, ids):
        """What is believed once it does not change any more for 50 ms."""
        last, since = self.believed(name, ids), time.monotonic()
        while time.monotonic() - since < 0.05:
            now = self.believed(name, ids)
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.01)
        return last

    def reset(self):
        ids = range(6000, 6000 + 10 * BLOCK + 5)
        self.direct("a", ids)
        until(lambda: self.believed("a", ids) == 10 * BLOCK, 2, "the prompt is not known")
        answer = httpx.post(self.engines["a"].url + "/reset_prefix_cache", timeout=10)
        want(answer.status_code == 200, answer.text)
        before = self.believed("a", ids)
        self.direct("a", range(300, 300 + BLOCK + 1))  # the engine tells of it with its next batch only
        took, _ = until(lambda: all(self.believed("a", ids, n) == 0 for n in self.nodes), 1, "the reset is not known")
        return (
            f"known {1000 * took:.0f} ms after the next batch (before it {before} tokens were believed); "
            f"the engine reports {self.agree('a', ids)}; {self.right()}"
        )

    def restarted(self):
        """Engine b dies of SIGKILL and comes back empty, while requests go on."""
        ids, node = range(7000, 7000 + 10 * BLOCK + 5), self.nodes[0]
        self.direct("b", ids)
        until(lambda: self.believed("b", ids) == 10 * BLOCK, 2, "the prompt is not known")
        b, before = self.processes["b"], node.sources()["b"]["resets"]
        b.kill()
        died = time.monotonic()
        gone, _ = until(lambda: node.sources()["b"]["state"] != "live", 15, "b is still live")
        b.start(self.args.restart, EVENTS=",".join(map(str, self.events["b"])))
        with Load(self.talk.clients["n2"], 2, "down", max_tokens=4, pause=1) as load:
            healthy, _ = until(self.engines["b"].healthy, 550, "b does not start", pause=0.1)
            back = time.monotonic()
            live, _ = until(lambda: all(self.live(n) for n in self.nodes), 15, f"not live again: {[n.sources().get('b') for n in self.nodes]}")
        want(set(load.seen) <= {"whole"}, load.seen, load.faults[:3])
        resets = {why: n - before.get(why, 0) for why, n in node.sources()["b"]["resets"].items() if n > before.get(why, 0)}
        cached = self.agree("b", ids)
        want(cached == 0, cached)
        until(lambda: self.believed("b", ids) == 10 * BLOCK, 2, "what it stored since is not known")
        return (
            f"unheard {gone:.1f} s after it died; healthy after {back - died:.0f} s, its events live {live:.1f} s later; reset by {list(resets)}; "
            f"the old prompt: believed 0, reported {cached}; meanwhile {dict(load.seen)}; {self.right(10)}"
        )

    # --- the stream of events ---------------------------------------------------------------------------------------------------------

    def cut_one(self):
        """One node hears b no more: its peer tells it."""
        ids = range(8000, 8000 + 10 * BLOCK + 5)
        for w in self.wires["n1"]:
            w.cut()
        try:
            time.sleep(FORGETS + 2)
            self.direct("b", ids)
            until(lambda: self.believed("b", ids, self.nodes[1]) == 10 * BLOCK, 2, "n2 does not know")
            took, _ = until(lambda: self.believed("b", ids, self.nodes[0]) == 10 * BLOCK, 2, "n1 does not know")
            by = [s["by"] for s in self.nodes[0].admin.status()["index"]["sources"] if s["backend"] == "b" and s["state"] == "live"]
        finally:
            for w in self.wires["n1"]:
                w.mend()
        until(lambda: self.live(self.nodes[0]), 10, "n1 does not hear b again")
        return f"n1 knows what b stored meanwhile {1000 * took:.0f} ms after n2, by {by}; {self.right()}"

    def cut_both(self):
        """No node hears b for eight seconds."""
        old, new, node = range(9000, 9000 + 10 * BLOCK + 5), range(11000, 11000 + 10 * BLOCK + 5), self.nodes[0]
        self.direct("b", old)
        until(lambda: self.believed("b", old) == 10 * BLOCK, 2, "the prompt is not known")
        before = node.sources()["b"]
        wires = [w for list in self.wires.values() for w in list]
        with Load(self.talk.clients["n1"], 2, "cut", max_tokens=4, pause=0.5) as load:
            for w in wires:
                w.cut()
            begun = time.monotonic()
            try:
                forgotten, _ = until(lambda: self.believed("b", old) == 0, 8, "b is not forgotten")
                problem = node.sources()["b"]["problem"].partition(" (")[0]
                self.direct("b", new)
                time.sleep(max(0, 8 - (time.monotonic() - begun)))
            finally:
                for w in wires:
                    w.mend()
            mended = time.monotonic()
            until(lambda: all(self.live(n) for n in self.nodes), 15, "b is not heard again")
            until(lambda: self.believed("b", new) == 10 * BLOCK and self.believed("b", old) == 10 * BLOCK, 5, "the replay did not heal it")
            healed = time.monotonic() - mended
        want(set(load.seen) == {"whole"}, load.seen, load.faults[:3])
        want(problem and 4 <= forgotten <= 7, forgotten, problem)
        source = node.sources()["b"]
        return (
            f"forgotten after {forgotten:.1f} s ({problem!r}); {sum(load.seen.values())} requests meanwhile, all whole; healed {healed:.1f} s after, "
            f"{source['replays'] - before['replays']} replay; old and new known, the engine reports "
            f"{self.agree('b', old)} and {self.agree('b', new)}; {self.right()}"
        )

    def left(self):
        """The nodes' own figures at the end of the phase, and how they go."""
        panics = sum(n.admin.metric("kvca_panics_total") for n in self.nodes)
        for n in self.nodes:
            took, _ = until(n.admin.idle, 3, f"{n.name}: load is still booked")
        fallbacks = {n.name: n.admin.metric("kvca_index_fallback_total") for n in self.nodes}
        distrusted = [n.admin.status()["index"]["distrusted"] for n in self.nodes]
        by_itself = [n.end() for n in self.nodes]
        want(panics == 0 and all(by_itself) and not any(distrusted), panics, by_itself, distrusted)
        return f"nothing booked, 0 panics, both drained; fallbacks counted {fallbacks}"

    # --- the first token ----------------------------------------------------------------------------------------------------------------

    def first_data(self):
        """When a stream's headers and its first data come, of 24 prompts of 1,500 tokens at once."""
        numbers = random.Random(SEED)

        def stream(url):
            ids = [numbers.randrange(1000, 100000) for _ in range(1500)]
            body = {"model": MODEL, "prompt": ids, "max_tokens": 8, "temperature": 0, "stream": True, "ignore_eos": True}
            begun = time.monotonic()
            with httpx.stream("POST", url + "/v1/completions", json=body, timeout=60) as answer:
                headers = time.monotonic() - begun
                want(answer.status_code == 200, answer.status_code)
                first = None
                for piece in answer.iter_raw():
                    first = first or (piece.strip() and time.monotonic() - begun)
            want(first, "no data")
            return headers, first

        def at_once(urls):
            with ThreadPoolExecutor(24) as pool:
                seen = list(pool.map(lambda i: stream(urls[i % len(urls)]), range(24)))
            return ", ".join(
                f"{what} p50 {1000 * statistics.median(v):.0f} ms, max {1000 * max(v):.0f} ms"
                for what, v in zip(("headers", "first data"), zip(*seen))
            )

        direct = at_once([e.url for e in self.engines.values()])
        time.sleep(1)
        return f"directly: {direct}; through the gateway: {at_once([n.base for n in self.nodes])}"

    # --- agents -----------------------------------------------------------------------------------------------------------------------

    def agents(self):
        """New nodes that read no events. Their agents file names one agent, for b only."""
        work, token = self.args.work, "".join(random.choices("abcdefghijkmnpqrstuvwxyz23456789", k=32))
        self.files = [os.path.join(work, n) for n in ("agents", "agent-token")]
        for file, text in zip(self.files, (f"beside-b {token} b\n", token + "\n")):
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
                f.write(text)
        n1, n2 = (Node(work, n, self.args.kvca) for n in ("m1", "m2"))
        self.nodes, self.talk = [n1, n2], Talk([n1, n2], SEED + 1, unheard=["a"])
        common = [f"--backend={e.name}={e.url}" for e in self.engines.values()]
        common += [f"--agents-file={self.files[0]}", f"--tokenizer={self.args.model}"]
        n1.run(*common)
        n2.run(*common, f"--join=127.0.0.1:{n1.gossip}")
        for n in self.nodes:
            n.ready()
            until(lambda: len(n.admin.status()["members"]) == 2, 10, "the nodes do not find each other")

    def agent(self, *args):
        return Process(self.args.work, "agent").start([
            self.args.kvca, "agent", "--node", f"127.0.0.1:{self.nodes[0].link}", "--name", "beside-b",
            "--token-file", self.files[1], *args,
        ])

    def told(self, node, live=True):
        s = node.sources().get("b")
        return (s is not None and s["state"] == "live" and s) if live else s is None or s["state"] != "live"

    def tell(self):
        self.agents()
        ids = range(12000, 12000 + 10 * BLOCK + 5)
        self.direct("b", ids)
        want(all(self.told(n, live=False) for n in self.nodes), "b is known before any agent")
        events, replay = self.events["b"]
        beside = self.agent("--events", f"b=tcp://127.0.0.1:{events},tcp://127.0.0.1:{replay}")
        took, _ = until(lambda: all(self.told(n) for n in self.nodes), 10, f"not known: {[n.sources() for n in self.nodes]}")
        until(lambda: all(self.covered(n, "b") for n in self.nodes), 3, "b is not covered")
        by = [self.told(n)["by"] for n in self.nodes]
        cached = self.agree("b", ids)
        want(cached == 10 * BLOCK, cached)
        new = range(13000, 13000 + 10 * BLOCK + 5)
        self.direct("b", new)
        spread, _ = until(lambda: all(self.believed("b", new, n) == 10 * BLOCK for n in self.nodes), 2, "what b stores is not told")
        right = self.right_on("b")
        beside.end()
        gone, _ = until(lambda: all(self.told(n, live=False) for n in self.nodes), 3, "what the agent told is still believed")
        want(took < 2, f"both nodes knew after {took:.1f} s")
        return (
            f"both nodes know {took:.2f} s after the agent's start, by {by}; a new prompt within {1000 * spread:.0f} ms at both; {right}; "
            f"forgotten by both {1000 * gone:.0f} ms after the agent had ended"
        )

    def covered(self, node, name):
        """Whether decisions ask the index about a backend: nodes look every half second who is told of."""
        decision = node.explain({"model": MODEL, "prompt": [1] * BLOCK, "max_tokens": 1}, "/v1/completions")
        return any(c["backend"] == name and c["index"] == "index" for c in decision["candidates"])

    def right_on(self, name, requests=12):
        """Requests that go to a covered backend are predicted right; the other backend is not covered."""
        before = len(self.talk.seen)
        for n in range(requests):
            self.talk.conversation(f"agent {n}", turns=2)
        seen = [s for s in self.talk.seen[before:] if s.backend == name]
        want(seen and all(s.right for s in seen), [(s.kind, s.backend, s.predicted, s.fallback, s.reported) for s in seen])
        return f"{len(seen)} requests on {name} predicted right, of {2 * requests}"

    def supervised(self):
        """The agent starts an engine in b's place, and again when that is killed."""
        ids = range(12000, 12000 + 10 * BLOCK + 5)
        self.processes["b"].end()
        # Without EVENTS: the agent chooses the ports.
        beside = self.agent("--backend", "b", "--grace", "10s", "--", *self.args.restart)
        try:
            healthy, _ = until(self.engines["b"].healthy, 550, "the engine does not start", pause=0.1)
            self.direct("b", ids)
            told, _ = until(lambda: all(self.told(n) for n in self.nodes), 15, f"not told: {[n.sources() for n in self.nodes]}")
            until(lambda: all(self.covered(n, "b") for n in self.nodes), 5, "b is not covered")
            cached = self.agree("b", ids)
            want(cached == 10 * BLOCK, cached)
            first = self.child_of(beside)
            os.killpg(first, signal.SIGKILL)
            again, second = until(lambda: self.child_of(beside) not in (0, first) and self.child_of(beside), 15, "it is not started again")
            gone, _ = until(lambda: not any(self.still(n, "b", ids) for n in self.nodes), 15, "still believed")
        finally:
            ended = beside.end(25)
        want(ended, "the agent did not end by itself")
        try:
            os.killpg(second, 0)
            raise AssertionError("the engine outlives its agent")
        except ProcessLookupError:
            pass
        return (
            f"healthy after {healthy:.0f} s, told {told:.1f} s after its first request, {cached} tokens believed and reported; "
            f"killed: started again after {again:.1f} s, forgotten after {again + gone:.1f} s; the engine ends with the agent"
        )

    @staticmethod
    def still(node, name, ids):
        """Whether a node believes anything of a prompt on a backend, which may be gone."""
        decision = node.explain({"model": MODEL, "prompt": list(ids), "max_tokens": 1}, "/v1/completions")
        return any(c["backend"] == name and c["index"] == "index" and c["matched_blocks"] for c in decision["candidates"])

    @staticmethod
    def child_of(process):
        """The agent's engine, which leads a group of its own; 0 for none."""
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.child.pid)], capture_output=True, text=True).stdout.split()
        return int(children[0]) if children else 0


def main():
    p = argparse.ArgumentParser()
    for name in ("kvca", "work", "model", "report"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--engine", action="append", required=True, help="NAME=URL")
    p.add_argument("--events", action="append", required=True, help="NAME=EVENTS,REPLAY: ports")
    p.add_argument("--only", help="the checks to run, by their methods' names")
    p.add_argument("--restart", nargs=argparse.REMAINDER, required=True, help="the command that starts engine b again; comes last")
    args = p.parse_args()

    checks, c = Checks(args.report), Checked(args)
    plan = [
        ("both engines are heard by both nodes", c.started, 60),
        ("prompts are tokenized, by a self-test", c.tokenizers, 30),
        ("predicted is reported, one request at a time", c.alone, 240),
        ("predicted is reported, six conversations at once", c.together, 120),
        ("both nodes predict alike", c.alike, 60),
        ("blocks are evicted from a", c.evicted, 60),
        ("the cache of a is reset", c.reset, 30),
        ("one node does not hear b", c.cut_one, 60),
        ("no node hears b for 8 s", c.cut_both, 60),
        ("headers and first data under 24 prefills of 1,500 tokens", c.first_data, 120),
        ("b is killed and started again", c.restarted, 600),
        ("zero load, and the nodes go", c.left, 60),
        ("an agent tells of b", c.tell, 90),
        ("an agent starts b, and again when it is killed", c.supervised, 600),
        ("zero load, and these nodes go", c.left, 60),
    ]
    for name, check, seconds in plan:
        if not args.only or check.__name__ in args.only.split(","):
            checks.run(name, check, seconds=seconds)
    for n in c.nodes:
        n.end()
    sys.exit(checks.failed > 0)


if __name__ == "__main__":
    main()
