"""Part D: two gateway nodes in front of llama.cpp's server with real weights, which publishes no events: the block map decides."""

import argparse
import sys

import httpx2 as httpx
import openai

from checks import Checks, metric, until, want
from engine import Turn
from node import Node

MODEL = "smollm2"
SYSTEM = "You are a lighthouse keeper. You answer in one short sentence, in plain words. " * 8
ASKED = ["What is a lighthouse?", "Who looks after it?", "What does it burn?"]


class Checked:
    def __init__(self, args):
        self.engine = args.engine
        self.nodes = [Node(args.work, n, args.kvca) for n in ("d1", "d2")]
        self.clients = [openai.OpenAI(base_url=n.base + "/v1", api_key="none", timeout=60, max_retries=0) for n in self.nodes]

    def started(self):
        d1, d2 = self.nodes
        d1.run(f"--backend=llama={self.engine}")
        d2.run(f"--backend=llama={self.engine}", f"--join=127.0.0.1:{d1.gossip}")
        for n in self.nodes:
            n.ready()
        until(lambda: all([m.id for m in c.models.list()] == [MODEL] for c in self.clients), 10, "the model is not discovered")
        backend = d1.admin.backend("llama")
        return f"{MODEL}; cache of {backend['cache_tokens']} tokens; health {backend['health']}"

    def conversation(self):
        """Turns at one node and the other, whole and streamed. Real weights answer alike with and without the gateway; only to begin with,
        since what was cached is computed in other batches and rounded otherwise."""
        messages, turns = [{"role": "system", "content": SYSTEM}], []
        for n, asked in enumerate(ASKED):
            messages.append({"role": "user", "content": asked})
            turn = Turn(self.clients[n % 2], messages, stream=n % 2 == 1, max_tokens=12, model=MODEL)
            want(turn.usage and turn.usage.completion_tokens == 12, turn.usage)
            turns.append(turn)
            messages.append({"role": "assistant", "content": turn.text})
        again = httpx.post(
            self.engine + "/v1/chat/completions", timeout=60,
            json={"model": MODEL, "messages": messages[:2], "max_tokens": 12, "temperature": 0, "ignore_eos": True},
        ).json()["choices"][0]["message"]["content"]
        want(again[:20] == turns[0].text[:20], "directly", again, "through the gateway", turns[0].text)
        cached = [(t.cached, t.usage.prompt_tokens) for t in turns]
        want(all(c > 0.5 * p for c, p in cached[1:]), cached)
        told = [{n: node.admin.metric(f"kvca_{n}_cached_tokens_total") for n in ("predicted", "reported")} for node in self.nodes]
        return f"{turns[0].text!r}, which begins as without the gateway; cached of prompt {cached}; the nodes predicted and were told {told}"

    def leaves(self):
        raw = self.clients[0].chat.completions.with_raw_response.create(
            model=MODEL, messages=[{"role": "user", "content": "Tell all."}], stream=True, max_tokens=900, extra_body={"ignore_eos": True}
        )
        stream = raw.parse()
        for n, _ in enumerate(stream):
            if n == 4:
                break
        stream.close()
        took, _ = until(lambda: metric(self.engine, "llamacpp:requests_processing") == 0, 5, "the engine still runs it")
        return f"the engine runs nothing any more after {1000 * took:.0f} ms"

    def left(self):
        settled = [n.admin.settled() for n in self.nodes]
        by_itself = [n.end() for n in self.nodes]
        want(all(by_itself), by_itself)
        return "; ".join(settled)


def main():
    p = argparse.ArgumentParser()
    for name in ("kvca", "work", "report", "engine"):
        p.add_argument("--" + name, required=True)
    args = p.parse_args()
    checks, c = Checks(args.report), Checked(args)
    checks.run("the model is discovered", c.started)
    checks.run("a conversation over both nodes", c.conversation, seconds=120)
    checks.run("client leaves mid-stream", c.leaves, seconds=60)
    checks.run("zero load, and the nodes go", c.left, seconds=60)
    for n in c.nodes:
        n.end()
    sys.exit(checks.failed > 0)


if __name__ == "__main__":
    main()
