"""Asks the services, then asks the recorder whether it can tell what happened.

    check.py --api URL --vllm URL --app DIALECT=URL ... [--asks N] [--out FILE]

Every line of the output is a check. Ends with 1 when one failed.
"""

import argparse
import json
import sys
import time
import urllib.parse
import urllib.request
import uuid

MODEL = "tiny"
PATIENCE_SECONDS = 20

# What stands on vLLM's span, and what it has to be called beside it.
VLLM_SPAN = {
    "gen_ai.usage.prompt_tokens": "gen_ai.usage.input_tokens",
    "gen_ai.usage.completion_tokens": "gen_ai.usage.output_tokens",
    "gen_ai.request.n": "gen_ai.request.choice.count",
    "gen_ai.latency.time_to_first_token": "llm.request.time_to_first_token",
    "gen_ai.latency.time_in_queue": "llm.request.queue_time",
    "gen_ai.latency.time_in_model_prefill": "llm.request.prefill_time",
    "gen_ai.latency.time_in_model_decode": "llm.request.decode_time",
    "gen_ai.latency.time_in_model_inference": "llm.request.inference_time",
    "gen_ai.latency.e2e": "llm.request.duration",
}

# Canonical names on the span of the call, with what they have to say.
CALL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": MODEL,
    "gen_ai.request.temperature": "0.7",
    "gen_ai.request.top_p": "0.9",
    "gen_ai.request.max_tokens": "24",
    "gen_ai.request.seed": "7",
    "gen_ai.provider.name": "openai",
}

# Scraped metrics and their canonical names, as PromQL has them.
METRICS = {
    "vllm:prompt_tokens_total": "llm_tokens_prompt_total",
    "vllm:generation_tokens_total": "llm_tokens_generation_total",
    "vllm:time_to_first_token_seconds_count": "gen_ai_server_time_to_first_token_seconds_count",
    "vllm:request_queue_time_seconds_count": "llm_request_queue_time_seconds_count",
    "vllm:request_prefill_time_seconds_count": "llm_request_prefill_time_seconds_count",
    "vllm:request_decode_time_seconds_count": "llm_request_decode_time_seconds_count",
    "vllm:e2e_request_latency_seconds_count": "gen_ai_server_request_duration_seconds_count",
    "vllm:num_requests_running": "llm_engine_requests_running",
    "vllm:num_requests_waiting": "llm_engine_requests_waiting",
    "vllm:kv_cache_usage_perc": "llm_kv_cache_usage_ratio",
}


class Checks:
    """Counts and prints."""

    def __init__(self):
        self.passed = self.failed = 0

    def that(self, ok, text):
        """Notes one check."""
        if ok:
            self.passed += 1
        else:
            self.failed += 1
        print(("ok    " if ok else "FAIL  ") + text, flush=True)
        return ok

    def equal(self, got, want, text):
        """Notes that two values are the same."""
        return self.that(got == want, text if got == want else f"{text}: {got!r}, want {want!r}")


def fetch(url, body=None, headers=None):
    """Returns the JSON that a server answers with."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **(headers or {})}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as r:
        return json.load(r)


class Recorder:
    """The recorder's API."""

    def __init__(self, url):
        self.url = url

    def trace(self, trace_id):
        """Returns the spans of a trace, none while there is none."""
        try:
            return fetch(f"{self.url}/api/v1/traces/{trace_id}")["data"]["spans"]
        except urllib.error.HTTPError as e:
            if e.code == 404:
                return []
            raise

    def value(self, query):
        """Returns the sum of the series that a query selects, None where there are none."""
        answer = fetch(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': f'sum({query})'})}")
        result = answer["data"]["result"]
        return float(result[0]["value"][1]) if result else None

    def series(self):
        """Returns the labels of all series."""
        match = urllib.parse.urlencode({"match[]": '{__name__=~".+"}'})
        return fetch(f"{self.url}/api/v1/series?{match}")["data"]


class Followed:
    """One request: what its client was told, and the spans that the recorder has."""

    def __init__(self, dialect, request_id, stream, answer, recorder):
        self.dialect, self.request_id, self.stream, self.answer = dialect, request_id, stream, answer
        self.recorder, self.spans = recorder, []

    @property
    def what(self):
        """Says which request this is."""
        return f"{self.dialect}, {'streamed' if self.stream else 'whole'}, {self.request_id[:8]}"

    def one(self, has):
        """Returns the only span that has something, None where there is none or more."""
        found = [s for s in self.spans if has(s)]
        return found[0] if len(found) == 1 else None

    @property
    def entry(self):
        """The span of the HTTP server."""
        return self.one(lambda s: s.get("kind") == "server" and s["attributes"].get("http.route") == "/ask")

    @property
    def chain(self):
        """The span of the chain: the uppermost that is LangChain's."""
        return self.one(lambda s: s["name"] in ("RunnableSequence", "RunnableSequence.workflow", "invoke_workflow RunnableSequence"))

    @property
    def call(self):
        """The span of the call of the model, as LangChain's instrumentation sees it."""
        return self.one(
            lambda s: s["service"] != "vllm" and s["attributes"].get("gen_ai.operation.name") == "chat"
        )

    @property
    def client(self):
        """The span of the HTTP client."""
        return self.one(
            lambda s: s.get("kind") == "client" and s["name"] == "POST"
        )

    @property
    def engine(self):
        """vLLM's own span."""
        return self.one(lambda s: s["service"] == "vllm" and s["name"] == "llm_request")

    def whole(self):
        """Fetches the trace; tells whether all five spans are there."""
        self.spans = self.recorder.trace(self.answer["trace_id"])
        return all((self.entry, self.chain, self.call, self.client, self.engine))

    def path(self, span):
        """Returns the spans from the root to a span."""
        by_id = {s["span_id"]: s for s in self.spans}
        path = []
        while span is not None and span not in path:
            path.insert(0, span)
            span = by_id.get(span.get("parent_span_id"))
        return path


def until(done, seconds=PATIENCE_SECONDS):
    """Waits until something is so; False when it did not become so in time."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True


def ask(recorder, dialect, url, n):
    """Asks n times, every second answer in pieces."""
    followed = []
    for i in range(n):
        request_id = str(uuid.uuid4())
        body = {"question": f"What does recorder {i} keep, and for whom?" + " Why?" * i, "stream": i % 2 == 1}
        answer = fetch(f"{url}/ask", body, {"x-request-id": request_id})
        followed.append(Followed(dialect, request_id, body["stream"], answer, recorder))
    return followed


def check_request(checks, f):
    """Checks one request's trace."""
    if not checks.that(until(f.whole), f"{f.what}: one trace has the spans of server, chain, call, client and vLLM"):
        for s in f.spans:
            print(f"        {s['service']} {s.get('kind')} {s['name']}")
        return
    path = f.path(f.engine)
    checks.that(
        path[0] is f.entry and path[-2] is f.client,
        f"{f.what}: the way from the HTTP server to vLLM has no gap: " + " > ".join(s["name"] for s in path),
    )
    checks.that(f.path(f.call)[0] is f.entry, f"{f.what}: the call belongs to the HTTP request")
    engine, call = f.engine["attributes"], f.call["attributes"]
    checks.equal(f.entry["attributes"].get("request.id"), f.request_id, f"{f.what}: request.id on the server's span")
    checks.equal(engine.get("request.id"), f.request_id, f"{f.what}: request.id on vLLM's span")
    checks.that(f.request_id in engine.get("gen_ai.request.id", ""), f"{f.what}: what vLLM calls the request is kept")
    for sent, canonical in VLLM_SPAN.items():
        checks.that(
            sent in engine and canonical in engine and float(engine[sent]) == float(engine[canonical]),
            f"{f.what}: vLLM's {sent} is kept and is {canonical} ({engine.get(canonical)})",
        )
    for name, want in CALL.items():
        checks.equal(call.get(name), want, f"{f.what}: {name} on the call is {want}")
    usage = f.answer["usage"]
    for name, told in (("input", usage["input_tokens"]), ("output", usage["output_tokens"])):
        canonical = f"gen_ai.usage.{name}_tokens"
        checks.that(
            call.get(canonical) == engine.get(canonical) == str(told),
            f"{f.what}: {canonical} is {told}: LangChain {call.get(canonical)}, vLLM {engine.get(canonical)}",
        )
    for name in ("gen_ai.input.messages", "gen_ai.output.messages"):
        checks.that(name in call, f"{f.what}: {name} on the call")


def check_sums(checks, recorder, followed):
    """Checks that tokens come to the same by answers, spans and counters."""
    sums = {}
    for name in ("input", "output"):
        canonical = f"gen_ai.usage.{name}_tokens"
        spans = [f for f in followed if f.call and f.engine]
        sums[name] = {
            "answers": sum(f.answer["usage"][f"{name}_tokens"] for f in followed),
            "LangChain's spans": sum(int(f.call["attributes"].get(canonical, 0)) for f in spans),
            "vLLM's spans": sum(int(f.engine["attributes"].get(canonical, 0)) for f in spans),
        }
    for name, metric in (("input", "llm_tokens_prompt_total"), ("output", "llm_tokens_generation_total")):
        want = sums[name]["answers"]
        until(lambda metric=metric, want=want: recorder.value(metric) == want, 15)
        sums[name][f"vLLM's counter {metric}"] = recorder.value(metric)
        checks.that(
            len({float(v or 0) for v in sums[name].values()}) == 1,
            f"{name} tokens agree: " + ", ".join(f"{k} {v}" for k, v in sums[name].items()),
        )


def check_metrics(checks, recorder, requests):
    """Checks that what was scraped has its canonical name beside it."""
    for sent, canonical in METRICS.items():
        was, now = recorder.value(f'{{__name__="{sent}"}}'), recorder.value(f'{canonical}{{alias_source!=""}}')
        checks.that(was is not None and was == now, f"{sent} is kept and is {canonical}: {was}, {now}")
    for name in ("gen_ai_server_time_to_first_token_seconds_count", "llm_request_queue_time_seconds_count"):
        checks.equal(recorder.value(name), float(requests), f"{name} counts each request")
    checks.equal(recorder.value('up{job="vllm"}'), 1.0, "the target is up")


def main():
    """Asks, checks, and writes down what was emitted."""
    args = argparse.ArgumentParser()
    args.add_argument("--api", required=True)
    args.add_argument("--app", action="append", required=True)
    args.add_argument("--asks", type=int, default=6)
    args.add_argument("--out")
    args = args.parse_args()
    checks, recorder, followed = Checks(), Recorder(args.api), []
    for app in args.app:
        dialect, _, url = app.partition("=")
        followed += ask(recorder, dialect, url, args.asks)
    for f in followed:
        check_request(checks, f)
    check_sums(checks, recorder, followed)
    check_metrics(checks, recorder, len(followed))
    if args.out:
        with open(args.out, "w", encoding="utf-8") as out:
            traces = [{"dialect": f.dialect, "stream": f.stream, "spans": f.spans} for f in followed]
            json.dump({"traces": traces, "series": recorder.series()}, out, indent=1)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
