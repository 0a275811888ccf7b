"""Part A: what the vendors' Python clients get from the gateway in front of simulated backends."""

import argparse
import asyncio
import sys
import time

import anthropic
import openai

from checks import Admin, Checks, metric, until, want

MODEL = "sim"
SHARED = "You are the librarian of a small harbour town and answer with patience. " * 40
LOOK_UP = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


def chat(title, earlier=()):
    return [{"role": "system", "content": SHARED}, *earlier, {"role": "user", "content": f"Where do I find {title}?"}]


class OpenAI:
    def __init__(self, base):
        # No retries of its own: they would hide what the gateway does.
        self.options = {"base_url": base + "/v1", "api_key": "none", "timeout": 20, "max_retries": 0}
        self.client = openai.OpenAI(**self.options)

    def models(self):
        listed = [m.id for m in self.client.models.list()]
        want(listed == [MODEL], "listed", listed)
        want(self.client.models.retrieve(MODEL).id == MODEL, "the model cannot be retrieved")
        return ", ".join(listed)

    def chat(self):
        raw = self.client.chat.completions.with_raw_response.create(model=MODEL, messages=chat("a map"), max_tokens=20)
        answer, headers = raw.parse(), raw.headers
        want(answer.choices[0].message.content and answer.choices[0].finish_reason == "length", answer)
        want(answer.usage.completion_tokens == 20, answer.usage)
        want(headers["X-KVCA-Backend"] and headers["X-KVCA-Reason"] and headers["X-Request-Id"], dict(headers))
        return f"{answer.usage.prompt_tokens} prompt tokens, by {headers['X-KVCA-Backend']} ({headers['X-KVCA-Reason']})"

    def follow_up(self):
        """The conversation goes on where it was, though another begins in between, and finds its cache."""
        backends, cached, turns = [], [], []
        for turn in range(4):
            messages = chat(f"volume {turn}", turns)
            raw = self.client.chat.completions.with_raw_response.create(model=MODEL, messages=messages, max_tokens=60)
            answer = raw.parse()
            backends.append(raw.headers["X-KVCA-Backend"])
            cached.append(answer.usage.prompt_tokens_details.cached_tokens / answer.usage.prompt_tokens)
            turns = messages[1:] + [{"role": "assistant", "content": answer.choices[0].message.content}]
            other = [{"role": "user", "content": f"Something else altogether, number {turn}: " + "x " * 600}]
            self.client.chat.completions.create(model=MODEL, messages=other, max_tokens=5)
        want(len(set(backends)) == 1, "a conversation of four turns went to", backends)
        want(min(cached[1:]) > 0.8, "shares cached", cached)
        return f"4 turns on {backends[0]}, at least {100 * min(cached[1:]):.0f} % of each follow-up cached"

    def stream(self):
        stream = self.client.chat.completions.create(
            model=MODEL, messages=chat("a chart"), max_tokens=4000, stream=True, stream_options={"include_usage": True}
        )
        text, times, usage, finish = "", [], None, None
        for chunk in stream:
            times.append(time.monotonic())
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
        want(text and finish == "length", repr(text), finish)
        want(usage and usage.completion_tokens == 4000, usage)
        took = times[-1] - times[0]
        gap = max(b - a for a, b in zip(times, times[1:]))
        want(len(times) > 50 and gap < took / 2, len(times), "chunks in", took, "s with a gap of", gap, "s: something held them back")
        return f"{len(times)} chunks over {took:.2f} s, {usage.completion_tokens} tokens"

    def tools(self):
        tools = [{"type": "function", "function": {"name": "look_up", "parameters": LOOK_UP}}]
        ask = {"model": MODEL, "messages": chat("an atlas"), "tools": tools, "tool_choice": "required"}
        answer = self.client.chat.completions.create(**ask).choices[0]
        call = answer.message.tool_calls[0]
        want(answer.finish_reason == "tool_calls" and call.function.name == "look_up", answer)
        name = ""
        for chunk in self.client.chat.completions.create(**ask, stream=True):
            for part in (chunk.choices and chunk.choices[0].delta.tool_calls) or []:
                name += part.function.name or ""
        want(name == "look_up", "streamed", repr(name))
        turns = [answer.message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "Shelf 4."}]
        after = self.client.chat.completions.create(model=MODEL, messages=ask["messages"] + turns, tools=tools, max_tokens=10)
        want(after.choices[0].message.content, after)
        return "called whole and streamed, its result answered"

    def completions(self):
        whole = self.client.completions.create(model=MODEL, prompt=["Once upon", "a time"], max_tokens=8)
        want(len(whole.choices) == 2 and all(c.text for c in whole.choices), whole)
        text = "".join(
            c.choices[0].text for c in self.client.completions.create(model=MODEL, prompt="Once", max_tokens=8, stream=True) if c.choices
        )
        want(text, "an empty stream")
        return f"2 prompts in one call, {whole.usage.completion_tokens} tokens; streamed"

    def embeddings(self):
        answer = self.client.embeddings.create(model=MODEL, input=["north", "south"])
        want(len(answer.data) == 2 and len(answer.data[0].embedding) > 0, answer)
        want(answer.data[0].embedding != answer.data[1].embedding, "two texts have one embedding")
        return f"2 of {len(answer.data[0].embedding)} numbers"

    def responses(self):
        backends, last = [], None
        for turn in range(4):
            more = {"previous_response_id": last.id} if last else {"instructions": SHARED}
            raw = self.client.responses.with_raw_response.create(
                model=MODEL, input=f"And volume {turn}?", max_output_tokens=30, **more
            )
            last = raw.parse()
            backends.append(raw.headers["X-KVCA-Backend"])
            want(last.output_text, last)
        want(len(set(backends)) == 1, "continued by id on", backends)
        want(self.client.responses.retrieve(last.id).id == last.id, "the response is not to be found")
        gone = refused(404, openai.NotFoundError, lambda: self.client.responses.retrieve("resp_nobody_made_this"))
        return f"4 turns by previous_response_id on {backends[0]}; retrieved; unknown id: {gone}"

    def responses_stream(self):
        with self.client.responses.stream(model=MODEL, input="Tell me more.", max_output_tokens=30) as stream:
            events = list(stream)
        # The client's own get_final_response takes a complete answer only; this one
        # ends at max_output_tokens.
        kinds, final = [event.type for event in events], events[-1].response
        want(kinds[0] == "response.created" and kinds[-1] in ("response.completed", "response.incomplete"), kinds)
        want(final.output_text, final)
        return f"{len(kinds)} events, {final.usage.output_tokens} tokens"

    def unknown_model(self):
        calls = {
            "chat": lambda: self.client.chat.completions.create(model="nobody", messages=chat("it")),
            "completions": lambda: self.client.completions.create(model="nobody", prompt="x"),
            "responses": lambda: self.client.responses.create(model="nobody", input="x"),
            "embeddings": lambda: self.client.embeddings.create(model="nobody", input="x"),
            "retrieve": lambda: self.client.models.retrieve("nobody"),
            "stream": lambda: self.client.chat.completions.create(model="nobody", messages=chat("it"), stream=True),
        }
        for name, call in calls.items():
            code = refused(404, openai.NotFoundError, call)
            want(code == "model_not_found", name, "has code", code)
        return f"NotFoundError, code model_not_found: {', '.join(calls)}"

    def bad_request(self):
        engine = refused(400, openai.BadRequestError, lambda: self.client.chat.completions.create(model=MODEL, messages=7))
        ours = refused(
            400, openai.BadRequestError, lambda: self.client.post("/chat/completions", cast_to=object, body=["no object"])
        )
        want(ours == "not_an_object", "code", ours)
        missing = refused(
            400, openai.BadRequestError, lambda: self.client.post("/chat/completions", cast_to=object, body={"messages": []})
        )
        want(missing == "missing_model", "code", missing)
        path = refused(404, openai.NotFoundError, lambda: self.client.post("/nowhere", cast_to=object, body={"model": MODEL}))
        want(path == "unknown_path", "code", path)
        return f"BadRequestError: the engine's own ({engine}), {ours}, {missing}; NotFoundError: {path}"

    def leaves(self, admin):
        """A stream that would take seconds is left after three chunks; the backend that ran it must notice."""

        async def leave():
            async with openai.AsyncOpenAI(**self.options) as client:
                raw = await client.chat.completions.with_raw_response.create(
                    model=MODEL, messages=chat("the sea"), max_tokens=60_000, stream=True
                )
                name, stream = raw.headers["X-KVCA-Backend"], raw.parse()
                url, n = admin.backend(name)["url"], 0
                async for _ in stream:
                    n += 1
                    if n == 3:
                        break
                running = metric(url, "vllm:num_requests_running")
                left = time.monotonic()
                await stream.close()
                return url, running, left

        before = admin.metric("kvca_requests_total", code="499")
        url, running, left = asyncio.run(leave())
        want(running == 1, running, "requests ran on the backend while the stream was read")
        until(lambda: metric(url, "vllm:num_requests_running") == 0, 2, "the backend still runs it", pause=0.005)
        took = time.monotonic() - left
        until(admin.idle, 2, "load is still booked")
        want(admin.metric("kvca_requests_total", code="499") == before + 1, "the leaving was not counted")
        return f"the backend runs nothing any more {1000 * took:.0f} ms later"

    def many(self):
        """Many at once through one asynchronous client, a third of them cancelled as tasks."""

        async def run():
            async with openai.AsyncOpenAI(**self.options) as client:

                async def one(i):
                    stream = await client.chat.completions.create(
                        model=MODEL, messages=chat(f"item {i % 7}"), max_tokens=400, stream=True
                    )
                    return [c.choices[0].finish_reason async for c in stream if c.choices][-1]

                tasks = [asyncio.create_task(one(i)) for i in range(60)]
                await asyncio.sleep(0.1)
                for task in tasks[::3]:
                    task.cancel()
                return await asyncio.gather(*tasks, return_exceptions=True)

        ends = asyncio.run(run())
        cancelled = sum(isinstance(e, asyncio.CancelledError) for e in ends)
        whole = sum(e == "length" for e in ends)
        want(cancelled + whole == 60, [e for e in ends if e != "length" and not isinstance(e, asyncio.CancelledError)][:3])
        return f"60 streams: {whole} read whole, {cancelled} cancelled"


class Anthropic:
    def __init__(self, base):
        self.client = anthropic.Anthropic(base_url=base, api_key="none", timeout=20, max_retries=0)
        self.ask = {"model": MODEL, "max_tokens": 30, "system": SHARED}

    def messages(self):
        backends, turns = [], []
        for turn in range(3):
            turns.append({"role": "user", "content": f"Where is volume {turn}?"})
            raw = self.client.messages.with_raw_response.create(**self.ask, messages=turns)
            answer = raw.parse()
            backends.append(raw.headers["X-KVCA-Backend"])
            want(answer.content[0].text and answer.usage.output_tokens == 30, answer)
            turns.append({"role": "assistant", "content": answer.content[0].text})
        want(len(set(backends)) == 1, "a conversation went to", backends)
        count = self.client.messages.count_tokens(model=MODEL, system=SHARED, messages=turns).input_tokens
        want(count > 0, "no tokens counted")
        return f"3 turns on {backends[0]}, stop reason {answer.stop_reason}; {count} tokens counted"

    def stream(self):
        with self.client.messages.stream(**self.ask, messages=[{"role": "user", "content": "Go on."}]) as stream:
            parts = list(stream.text_stream)
            final = stream.get_final_message()
        want("".join(parts) == final.content[0].text and parts, parts, final)
        want(final.usage.output_tokens == 30, final.usage)
        return f"{len(parts)} pieces, {final.usage.output_tokens} tokens"

    def tools(self):
        ask = {
            **self.ask,
            "messages": [{"role": "user", "content": "Look up the almanac."}],
            "tools": [{"name": "look_up", "input_schema": LOOK_UP}],
        }
        answer = self.client.messages.create(**ask, tool_choice={"type": "any"})
        call = next(c for c in answer.content if c.type == "tool_use")
        want(answer.stop_reason == "tool_use" and call.name == "look_up", answer)
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "Shelf 9."}
        ask["messages"] += [
            {"role": "assistant", "content": [c.model_dump(exclude_none=True) for c in answer.content]},
            {"role": "user", "content": [result]},
        ]
        after = self.client.messages.create(**ask)
        want(after.content, after)
        return f"called, its result answered ({after.stop_reason})"

    def errors(self):
        ask = {"max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
        try:
            self.client.messages.create(model="nobody", **ask)
        except anthropic.NotFoundError as e:
            body = e.body
        want(body["type"] == "error" and body["error"]["type"] == "not_found_error", body)
        want(body["error"]["code"] == "model_not_found", body)
        try:
            self.client.messages.create(model=MODEL, max_tokens=5, messages=7)
            raise AssertionError("a number passed for messages")
        except anthropic.BadRequestError as e:
            want(e.body["error"]["type"] == "invalid_request_error", e.body)
        return "NotFoundError with not_found_error, BadRequestError with invalid_request_error"


def refused(status, kind, call):
    """Expects a call to fail as this kind of error, and returns the error's code."""
    try:
        call()
    except kind as e:
        want(e.status_code == status, "status", e.status_code)
        want(e.body and e.body.get("message"), "the body cannot be read as an error:", e.body)
        return e.code
    raise AssertionError("nothing was refused")


def main():
    p = argparse.ArgumentParser()
    for name in ("base", "admin", "report"):
        p.add_argument("--" + name, required=True)
    args = p.parse_args()
    admin, checks = Admin(args.admin), Checks(args.report)

    o = OpenAI(args.base)
    checks.run("OpenAI: models", o.models)
    checks.run("OpenAI: chat", o.chat)
    checks.run("OpenAI: chat, streamed, with usage", o.stream)
    checks.run("OpenAI: follow-ups", o.follow_up)
    checks.run("OpenAI: tools, tool_choice required", o.tools)
    checks.run("OpenAI: completions", o.completions)
    checks.run("OpenAI: embeddings", o.embeddings)
    checks.run("OpenAI: responses", o.responses)
    checks.run("OpenAI: responses, streamed", o.responses_stream)
    checks.run("OpenAI: unknown model", o.unknown_model)
    checks.run("OpenAI: bad requests", o.bad_request)
    checks.run("OpenAI: client leaves mid-stream", o.leaves, admin)
    checks.run("OpenAI: many at once, some cancelled", o.many)

    a = Anthropic(args.base)
    checks.run("Anthropic: messages", a.messages)
    checks.run("Anthropic: stream", a.stream)
    checks.run("Anthropic: tool use", a.tools)
    checks.run("Anthropic: errors", a.errors)

    checks.run("zero load at the end", admin.settled)
    sys.exit(checks.failed > 0)


if __name__ == "__main__":
    main()
