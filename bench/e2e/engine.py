"""Part B: the gateway in front of two real engines, seen through the vendors' Python clients."""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import anthropic
import httpx2 as httpx
import openai

from checks import Admin, Checks, fetch, metric, until, want

MODEL = "tiny-qwen3"
BLOCK = 32  # tokens, as vllm.sh starts the engines
# About 600 tokens.
SHARED = "You keep the register of a lighthouse and note wind, water, ships and birds in plain words, each on a line of its own. " * 24
TOPICS = ["wind", "tide", "fog", "gulls", "herring", "coal", "oil", "lamp", "bell", "boats", "ice", "storm"]


def question(topic, turn):
    """About 150 tokens, and no two alike."""
    return f"Turn {turn} about {topic}. " + f"What does the entry on {topic} of day {turn * 7 + len(topic)} say? " * 8


class Engine:
    def __init__(self, name, url):
        self.name, self.url = name, url

    def running(self):
        return metric(self.url, "vllm:num_requests_running") + metric(self.url, "vllm:num_requests_waiting")

    def healthy(self):
        try:
            return fetch(self.url + "/health", timeout=1) is not None
        except OSError:
            return False


class Turn:
    """One chat completion through the gateway, whole or streamed."""

    def __init__(self, client, messages, stream, max_tokens=24, model=MODEL, **more):
        self.backend = self.usage = self.finish = None
        self.text, self.chunks = "", 0
        options = {"stream_options": {"include_usage": True}} if stream else {}
        raw = client.chat.completions.with_raw_response.create(
            model=model, messages=messages, stream=stream, max_tokens=max_tokens, temperature=0,
            extra_body={"ignore_eos": True, **more}, **options,
        )
        self.backend = raw.headers["X-KVCA-Backend"]
        self.predicted, self.fallback = raw.headers.get("X-KVCA-Predicted-Tokens"), raw.headers.get("X-KVCA-Fallback")
        if stream:
            self.read(raw.parse())
        else:
            answer = raw.parse()
            self.text, self.usage, self.finish = answer.choices[0].message.content, answer.usage, answer.choices[0].finish_reason

    def read(self, stream):
        for chunk in stream:
            self.chunks += 1
            self.usage = chunk.usage or self.usage
            for choice in chunk.choices:
                self.text += choice.delta.content or ""
                self.finish = choice.finish_reason or self.finish

    @property
    def cached(self):
        return self.usage.prompt_tokens_details.cached_tokens or 0


class Load:
    """Clients that ask one thing after another, half of them streamed, until they are told to stop. What befalls each is counted."""

    def __init__(self, client, clients, label, max_tokens=60, pause=0.0):
        self.client, self.label, self.max_tokens, self.pause = client, label, max_tokens, pause
        self.stop = threading.Event()
        self.seen, self.faults, self.backends = Counter(), [], Counter()
        self.threads = [threading.Thread(target=self.work, args=(i,)) for i in range(clients)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for t in self.threads:
            t.join(25)

    def work(self, i):
        n = 0
        while not self.stop.wait(self.pause):
            n += 1
            messages = [{"role": "user", "content": f"{self.label} {i} {n}: " + question(TOPICS[i], n)}]
            self.one(messages, stream=i % 2 == 0)

    def one(self, messages, stream):
        turn = Turn.__new__(Turn)
        turn.chunks, turn.finish = 0, None
        try:
            turn.__init__(self.client, messages, stream, self.max_tokens)
        except Exception as fault:
            # A stream that had begun cannot be moved; anything else must not be seen.
            kind = "broken after the first chunk" if turn.chunks else "failed before the first byte"
            self.seen[kind] += 1
            self.faults.append(f"{kind}: {type(fault).__name__}: {fault}")
            return
        self.seen["whole" if turn.finish == "length" else "ended short without an error"] += 1
        self.backends[turn.backend] += 1


class Checked:
    def __init__(self, args):
        self.args, self.admin = args, Admin(args.admin)
        self.engines = {n: Engine(n, u) for n, u in (e.split("=", 1) for e in args.engine)}
        # No retries of the client's own: they would hide what the gateway does.
        self.client = openai.OpenAI(base_url=args.base + "/v1", api_key="none", timeout=20, max_retries=0)

    def models(self):
        until(lambda: all(b["models"] == [MODEL] for b in self.admin.status()["backends"]), 5, "models are not discovered")
        listed = [m.id for m in self.client.models.list()]
        want(listed == [MODEL], listed)
        sizes = {b["id"]: b["cache_tokens"] for b in self.admin.status()["backends"]}
        return f"{MODEL} on {' and '.join(self.engines)}; cache sizes read from the engines: {sizes}"

    def conversations(self, system, at_once):
        """Twelve conversations of four turns; every second turn is streamed. Returns the figures and where the first turns went."""
        before = {n: self.admin.metric(f"kvca_{n}_cached_tokens_total") for n in ("predicted", "reported")}

        def talk(topic):
            messages, turns = [{"role": "system", "content": system(topic)}], []
            for n in range(4):
                messages.append({"role": "user", "content": question(topic, n)})
                turn = Turn(self.client, messages, stream=n % 2 == 1)
                want(turn.usage and turn.usage.completion_tokens == 24 and turn.finish == "length", turn.usage, turn.finish)
                turns.append(turn)
                messages.append({"role": "assistant", "content": turn.text or "."})
            return turns

        with ThreadPoolExecutor(at_once) as pool:
            talks = list(pool.map(talk, TOPICS))
        pairs = [(a, b) for turns in talks for a, b in zip(turns, turns[1:])]
        same = sum(a.backend == b.backend for a, b in pairs) / len(pairs)
        share = sum(b.cached / b.usage.prompt_tokens for _, b in pairs) / len(pairs)
        # What could be hit at most: the full blocks of the prompt before. The answer is tokenized anew, and differently.
        of_possible = sum(b.cached for _, b in pairs) / sum(a.usage.prompt_tokens // BLOCK * BLOCK for a, _ in pairs)
        first = Counter(turns[0].backend for turns in talks)
        predicted, reported = (self.admin.metric(f"kvca_{n}_cached_tokens_total") - before[n] for n in ("predicted", "reported"))
        figures = (
            f"{len(pairs)} follow-ups, {100 * same:.1f} % on the same backend; {100 * share:.1f} % of their prompts cached, "
            f"{100 * of_possible:.1f} % of the earlier prompt's full blocks (answers are hit too); first turns on {dict(first)}; "
            f"longest prompt {max(b.usage.prompt_tokens for _, b in pairs)} tokens; cached tokens predicted {predicted:.0f}, reported {reported:.0f} "
            f"({predicted / max(reported, 1):.2f})"
        )
        want(same >= 0.95 and share > 0.5 and of_possible > 0.9 and reported > 0, figures)
        return figures, first

    def shared(self):
        """One system prompt for all, few at once: the gateway may hold them all on the backend that has it."""
        return self.conversations(lambda _: SHARED, 4)[0]

    def own(self):
        """A system prompt for each, all at once: they must spread, so that staying is no accident."""
        figures, first = self.conversations(lambda topic: f"About {topic}. " + SHARED, 12)
        want(min(first["a"], first["b"]) >= 3, figures)
        return figures

    def unchanged(self):
        """A body with odd spelling and a field that nobody knows reaches the engine as it was written: the same tokens come of it."""
        body = (
            '{ "temperature":0,"ignore_eos" : true, "field_that_nobody_knows":{"z":1,"a":[1.0,1e2]},\n\t"max_tokens":12,'
            '"return_token_ids":true, "messages":[{"content":"caf\\u00e9 \\ud83d\\ude80 \\t tab","role":"user"}],'
            f'"model":"{MODEL}" }}'
        ).encode()
        urls = [self.args.base, *(e.url for e in self.engines.values())]
        answers = [
            httpx.post(u + "/v1/chat/completions", content=body, headers={"Content-Type": "application/json"}, timeout=20) for u in urls
        ]
        want(all(a.status_code == 200 for a in answers), [a.text[:200] for a in answers])
        ids = [a.json()["prompt_token_ids"] for a in answers]
        want(ids[0] and ids[0] == ids[1] == ids[2], ids)
        text = [a.json()["choices"][0]["message"]["content"] for a in answers]
        want(text[0] == text[1] == text[2], text)
        client = Turn(self.client, [{"role": "user", "content": "hello"}], stream=False, field_that_nobody_knows=[1, {"x": None}])
        want(client.finish == "length", client.finish)
        return f"unknown field accepted; {len(ids[0])} prompt tokens and the answer as from the engines themselves"

    def other_apis(self):
        text = self.client.completions.create(model=MODEL, prompt="The wind", max_tokens=8, temperature=0)
        want(text.usage.completion_tokens > 0, text)
        whole = self.client.responses.create(model=MODEL, input="The tide", max_output_tokens=16)
        want(whole.usage.output_tokens > 0, whole)
        with self.client.responses.stream(model=MODEL, input="The tide", max_output_tokens=16) as stream:
            kinds = [e.type for e in stream]
        want(kinds[0] == "response.created" and kinds[-1] in ("response.completed", "response.incomplete"), kinds)
        claude = anthropic.Anthropic(base_url=self.args.base, api_key="none", timeout=20, max_retries=0)
        ask = {"model": MODEL, "max_tokens": 16, "system": SHARED, "messages": [{"role": "user", "content": "The fog"}]}
        message = claude.messages.create(**ask)
        want(message.usage.output_tokens > 0, message)
        with claude.messages.stream(**ask) as stream:
            final = stream.get_final_message()
        want(final.usage.output_tokens > 0, final)
        return f"completions; responses, whole and as {len(kinds)} events; Anthropic messages, whole and streamed"

    def errors(self):
        codes = []
        for call, kind in (
            (lambda: self.client.chat.completions.create(model="nobody", messages=[]), openai.NotFoundError),
            (lambda: self.client.chat.completions.create(model=MODEL, messages=7), openai.BadRequestError),
            (lambda: self.client.completions.create(model=MODEL, prompt="x " * 9000, max_tokens=4), openai.BadRequestError),
        ):
            try:
                call()
            except kind as e:
                codes.append(e.code)
                continue
            raise AssertionError(f"no {kind.__name__}")
        want(codes[0] == "model_not_found", codes)
        return f"NotFoundError with code {codes[0]}; the engine's own BadRequestError for a bad type and for a prompt that is too long"

    def leaves(self):
        """The stream would take seconds; the engine must stop within two of the client's leaving."""
        raw = self.client.chat.completions.with_raw_response.create(
            model=MODEL, messages=[{"role": "user", "content": "Tell all."}], stream=True, max_tokens=3500, extra_body={"ignore_eos": True}
        )
        engine, stream = self.engines[raw.headers["X-KVCA-Backend"]], raw.parse()
        for n, _ in enumerate(stream):
            if n == 4:
                break
        until(lambda: engine.running() == 1, 2, "the engine does not show the request")
        stream.close()
        left = time.monotonic()
        took, _ = until(lambda: engine.running() == 0, 2, "the engine still runs it", pause=0.01)
        until(self.admin.idle, 2, "load is still booked")
        want(time.monotonic() - left < 2.5, "too late")
        return f"engine {engine.name} runs nothing any more after {1000 * took:.0f} ms"

    def killed(self):
        """Engine a dies of SIGKILL, with its children, under load."""
        a = self.admin.backend("a")
        self.generation = a["generation"]
        retries = self.admin.metric("kvca_retries_total")
        with Load(self.client, 8, "kill") as load:
            until(lambda: load.seen["whole"] > 20 and load.backends["a"] > 3, 30, f"engine a gets no load: {load.backends}")
            until(lambda: self.engines["a"].running() >= 1, 5, "engine a runs nothing")
            with open(self.args.pid_file) as f:
                os.killpg(int(f.read()), signal.SIGKILL)
            os.unlink(self.args.pid_file)
            died = time.monotonic()
            noticed, _ = until(lambda: self.admin.backend("a")["health"] == "unhealthy", 10, "engine a is still thought healthy")
            time.sleep(max(0, 6 - (time.monotonic() - died)))
        retried = self.admin.metric("kvca_retries_total") - retries
        figures = (
            f"{sum(load.seen.values())} requests by 8 clients: {dict(load.seen)}; {retried:.0f} moved on; "
            f"shown as unhealthy after {noticed:.1f} s; {load.faults[:3]}"
        )
        want(load.seen["failed before the first byte"] == 0 and load.seen["ended short without an error"] == 0, figures)
        return figures

    def restarted(self):
        """Engine a comes back while clients go on; it must be used within five seconds of its health check passing."""
        with open(self.args.log, "wb") as log:
            child = subprocess.Popen(self.args.restart, stdout=log, stderr=log, start_new_session=True)
        with open(self.args.pid_file, "w") as f:
            f.write(str(child.pid))
        with Load(self.client, 2, "down", max_tokens=8, pause=2) as down:
            start, _ = until(lambda: self.engines["a"].healthy() or child.poll() is not None, 400, "engine a does not start", pause=0.1)
            want(child.poll() is None, "engine a ended with", child.poll())
            with Load(self.client, 4, "back", max_tokens=16) as back:
                took, _ = until(lambda: back.backends["a"] or down.backends["a"], 5, "engine a gets nothing")
                until(lambda: self.admin.backend("a")["generation"] > self.generation, 5, "its generation did not grow")
        seen = down.seen + back.seen
        generation = self.admin.backend("a")["generation"]
        figures = (
            f"healthy again after {start:.0f} s, answers its first request {took:.1f} s later; generation {self.generation} to "
            f"{generation}; meanwhile {dict(seen)} {(down.faults + back.faults)[:3]}"
        )
        want(set(seen) == {"whole"}, figures)
        return figures

    def settled(self):
        figures = self.admin.settled()
        busy = {e.name: e.running() for e in self.engines.values()}
        want(not any(busy.values()), "engines still run", busy)
        return figures + "; the engines run nothing"


def main():
    p = argparse.ArgumentParser()
    for name in ("base", "admin", "report", "pid-file", "log"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--engine", action="append", required=True, help="NAME=URL")
    p.add_argument("--restart", nargs=argparse.REMAINDER, required=True, help="the command that starts engine a again; comes last")
    args = p.parse_args()

    checks, c = Checks(args.report), Checked(args)
    checks.run("models are discovered", c.models)
    checks.run("12 conversations of 4 turns, one system prompt, 4 at once", c.shared, seconds=120)
    checks.run("12 conversations of 4 turns, a system prompt each, all at once", c.own, seconds=120)
    checks.run("the body passes unchanged", c.unchanged)
    checks.run("other APIs", c.other_apis)
    checks.run("errors", c.errors)
    checks.run("client leaves mid-stream", c.leaves)
    checks.run("nothing is booked after that", c.settled)
    checks.run("engine a is killed under load", c.killed, seconds=60)
    checks.run("engine a comes back", c.restarted, seconds=430)
    checks.run("zero load at the end", c.settled)
    sys.exit(checks.failed > 0)


if __name__ == "__main__":
    main()
