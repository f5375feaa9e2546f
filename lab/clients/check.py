"""Asks the services, then asks the recorder whether it can tell what happened.

    check.py --api URL --app DIALECT=URL ... [--asks N] [--out FILE]

The dialect is the instrumentation that a service is under: openinference,
openllmetry or otel. Every line of the output is a check. Ends with 1 when one
failed.
"""

import argparse
import concurrent.futures
import json
import sys
import time
import urllib.error
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

# Canonical names on the span of the call, with what they have to say. Of all
# this, OpenLLMetry leaves out the seed.
CALL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": MODEL,
    "gen_ai.request.temperature": "0.7",
    "gen_ai.request.top_p": "0.9",
    "gen_ai.request.max_tokens": "24",
    "gen_ai.request.seed": "7",
    "gen_ai.provider.name": "openai",
}

UNSAID = {"openllmetry": {"gen_ai.request.seed"}}

# What OpenInference calls things; the two others use the canonical names.
OPENINFERENCE = {
    "llm.model_name": "gen_ai.request.model",
    "llm.provider": "gen_ai.provider.name",
    "llm.token_count.prompt": "gen_ai.usage.input_tokens",
    "llm.token_count.completion": "gen_ai.usage.output_tokens",
    "llm.token_count.total": "gen_ai.usage.total_tokens",
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

    def services(self, request_id):
        """Returns the services whose spans have a request's id, canonically."""
        query = f'{{record.type="span"}} request.id:="{request_id}"'
        ask = urllib.parse.urlencode({"query": query, "start": "15m", "end": "now"})
        rows = fetch(f"{self.url}/api/v1/records/query?{ask}", headers={"Accept": "application/json"})
        return sorted(row["service.name"] for row in rows)

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
        return self.one(
            lambda s: s["name"] in ("RunnableSequence", "RunnableSequence.workflow", "invoke_workflow RunnableSequence")
        )

    @property
    def call(self):
        """The span of the call of the model, as LangChain's instrumentation sees it."""
        return self.one(lambda s: s["service"] != "vllm" and s["attributes"].get("gen_ai.operation.name") == "chat")

    @property
    def client(self):
        """The span of the HTTP client."""
        return self.one(lambda s: s.get("kind") == "client" and s["name"] == "POST")

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

    def one(i):
        request_id = str(uuid.uuid4())
        body = {"question": f"What does recorder {i} keep, and for whom?" + " Why?" * i, "stream": i % 2 == 1}
        answer = fetch(f"{url}/ask", body, {"x-request-id": request_id})
        return Followed(dialect, request_id, body["stream"], answer, recorder)

    # Several at a time, so that what belongs to one could land on another.
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        return list(pool.map(one, range(n)))


def check_refused(checks, recorder, dialect, url):
    """Asks for more than the model takes: vLLM refuses it before its engine, which has no span of it."""
    trace_id = uuid.uuid4().hex
    try:
        fetch(
            f"{url}/ask",
            {"question": "Why? " * 600},
            {"x-request-id": "long", "traceparent": f"00-{trace_id}-{'1' * 16}-01"},
        )
        checks.that(False, f"{dialect}, refused: the question is too long")
    except urllib.error.HTTPError as e:
        checks.equal(e.code, 500, f"{dialect}, refused: the service fails")
    f = Followed(dialect, "long", False, {"trace_id": trace_id}, recorder)
    until(lambda: f.whole() or (f.entry and f.call and f.client))
    if not checks.that(f.entry and f.call and f.client, f"{dialect}, refused: the client's trace id holds the spans"):
        return
    checks.equal(f.client["attributes"].get("http.response.status_code"), "400", f"{dialect}, refused: vLLM said so")
    checks.that(
        f.call.get("status") == "error" and "maximum context length" in f.call.get("status_message", ""),
        f"{dialect}, refused: the call failed and says why",
    )
    checks.that(f.engine is None, f"{dialect}, refused: vLLM's engine never saw it")


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
    checks.that(f.chain in f.path(f.call), f"{f.what}: the call belongs to the chain")
    checks.that(f.path(f.call)[0] is f.entry, f"{f.what}: the call belongs to the HTTP request")
    checks.equal(
        f.recorder.services(f.request_id), [f"chain-{f.dialect}", "vllm"], f"{f.what}: found by its id at both servers"
    )
    check_engine(checks, f)
    check_call(checks, f)
    check_tokens(checks, f)


def check_engine(checks, f):
    """Checks vLLM's span: canonical names beside what was sent, ids, times."""
    engine = f.engine["attributes"]
    checks.equal(f.entry["attributes"].get("request.id"), f.request_id, f"{f.what}: request.id on the server's span")
    checks.equal(engine.get("request.id"), f.request_id, f"{f.what}: request.id on vLLM's span")
    checks.equal(engine.get("gen_ai.request.id"), f"chatcmpl-{f.request_id}", f"{f.what}: what vLLM calls it is kept")
    check_kept(checks, f, engine, VLLM_SPAN)
    for name in ("temperature", "top_p", "max_tokens"):
        name = f"gen_ai.request.{name}"
        checks.equal(engine.get(name), CALL[name], f"{f.what}: {name} on vLLM's span")
    first, all_of_it = (float(engine.get(f"llm.request.{n}", "nan")) for n in ("time_to_first_token", "duration"))
    client = f.client["duration_ns"] / 1e9
    # The client's span ends with the headers where the answer is streamed.
    checks.that(
        0 < first <= all_of_it and (f.stream or all_of_it <= client),
        f"{f.what}: first token after {first:.4f} s of {all_of_it:.4f} s in vLLM, {client:.4f} s at the client",
    )


def check_kept(checks, f, attributes, names):
    """Checks that canonical names stand beside what was sent."""
    for sent, canonical in names.items():
        checks.that(
            sent in attributes and attributes[sent] == attributes.get(canonical),
            f"{f.what}: {sent} is kept and is {canonical} ({attributes.get(canonical)})",
        )


def check_call(checks, f):
    """Checks the span of the call, as LangChain's instrumentation sees it."""
    call = f.call["attributes"]
    for name, want in CALL.items():
        if name not in UNSAID.get(f.dialect, ()):
            checks.equal(call.get(name), want, f"{f.what}: {name} on the call is {want}")
    if f.dialect == "openinference":
        check_kept(checks, f, call, OPENINFERENCE)
    streamed = call.get("gen_ai.request.stream")
    checks.that(streamed in (None, str(f.stream).lower()), f"{f.what}: nothing wrong is said of streaming: {streamed}")
    checks.that("length" in call.get("gen_ai.response.finish_reasons", ""), f"{f.what}: why the answer ended")
    if not f.stream:
        checks.equal(
            call.get("gen_ai.response.id"), f"chatcmpl-{f.request_id}", f"{f.what}: gen_ai.response.id is vLLM's"
        )
        checks.equal(call.get("gen_ai.response.model"), MODEL, f"{f.what}: gen_ai.response.model")
    for name in ("gen_ai.input.messages", "gen_ai.output.messages"):
        said = json.loads(call.get(name) or "[]")
        checks.that(said and all(m["parts"] for m in said), f"{f.what}: {name} on the call")


def check_tokens(checks, f):
    """Checks that all say the same of one request's tokens."""
    for name in ("input", "output"):
        canonical, told = f"gen_ai.usage.{name}_tokens", f.answer["usage"][f"{name}_tokens"]
        call, engine = f.call["attributes"].get(canonical), f.engine["attributes"].get(canonical)
        checks.that(
            call == engine == str(told), f"{f.what}: {canonical}: answer {told}, LangChain {call}, vLLM {engine}"
        )


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


def check_metrics(checks, recorder, followed):
    """Checks that what was scraped has its canonical name beside it."""
    for sent, canonical in METRICS.items():
        was, now = recorder.value(f'{{__name__="{sent}"}}'), recorder.value(f'{canonical}{{alias_source!=""}}')
        checks.that(was is not None and was == now, f"{sent} is kept and is {canonical}: {was}, {now}")
    for name in (
        "gen_ai_server_time_to_first_token_seconds_count",
        "llm_request_queue_time_seconds_count",
        "llm_requests_succeeded_total",
    ):
        checks.equal(recorder.value(name), float(len(followed)), f"{name} counts each request")
    checks.equal(recorder.value("llm_requests_failed_total"), 0.0, "llm_requests_failed_total counts none")
    for metric, attribute in (
        ("gen_ai_server_time_to_first_token_seconds_sum", "llm.request.time_to_first_token"),
        ("llm_request_queue_time_seconds_sum", "llm.request.queue_time"),
    ):
        scraped = recorder.value(metric) or 0
        spans = sum(float(f.engine["attributes"].get(attribute, 0)) for f in followed if f.engine)
        checks.that(
            abs(scraped - spans) <= 0.01 * spans, f"{metric} is that of the spans: {scraped:.6f} s, {spans:.6f} s"
        )
    checks.equal(recorder.value('up{job="vllm"}'), 1.0, "the target is up")


def check_clients(checks, recorder, followed):
    """Checks the metrics of the client's side, where the instrumentation has any."""
    for dialect in ("openllmetry", "otel"):
        for name in ("input", "output"):
            want = float(sum(f.answer["usage"][f"{name}_tokens"] for f in followed if f.dialect == dialect))
            query = f'gen_ai_client_token_usage_sum{{job="chain-{dialect}",gen_ai_token_type="{name}"}}'
            if want:
                until(lambda query=query, want=want: recorder.value(query) == want, 15)
                checks.equal(
                    recorder.value(query), want, f"{dialect}: gen_ai_client_token_usage of {name} is {want:.0f}"
                )


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
    for app in args.app:
        check_refused(checks, recorder, *app.split("=", 1))
    check_sums(checks, recorder, followed)
    check_metrics(checks, recorder, followed)
    check_clients(checks, recorder, followed)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as out:
            traces = [{"dialect": f.dialect, "stream": f.stream, "spans": f.spans} for f in followed]
            json.dump({"traces": traces, "series": recorder.series()}, out, indent=1)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
