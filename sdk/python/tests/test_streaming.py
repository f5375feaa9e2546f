"""Streams: every chunk counted, every end told, no context left behind."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import random
import time
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any, Optional

import pytest
from opentelemetry import baggage, trace
from opentelemetry import context as otel_context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from inquest._stream_recorder import _Gaps
from inquest.streaming import StreamRecorder, wrap_async_stream, wrap_stream


class Traced:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = provider.get_tracer("test")

    def one(self) -> ReadableSpan:
        spans = self.exporter.get_finished_spans()
        assert len(spans) == 1
        return spans[0]

    def attributes(self) -> dict[str, Any]:
        return dict(self.one().attributes or {})

    def outcome(self) -> tuple[Any, Any, Any]:
        a = self.attributes()
        return a["stream.outcome"], a["stream.end_reason"], a["stream.chunks"]


@pytest.fixture
def traced() -> Traced:
    return Traced()


def openai(
    text: str = "", finish: Optional[str] = None, usage: Optional[int] = None, **more: Any
) -> dict[str, Any]:
    chunk: dict[str, Any] = {
        "id": "c1",
        "model": "m",
        "choices": [{"delta": {"content": text}, "finish_reason": finish}],
    }
    if usage is not None:
        chunk = {
            "id": "c1",
            "model": "m",
            "choices": [],
            "usage": {"prompt_tokens": 5, "completion_tokens": usage},
        }
    chunk["choices"] = [{**c, **more} for c in chunk["choices"]]
    return chunk


def as_object(value: Any) -> Any:
    if isinstance(value, dict):
        return SimpleNamespace(**{k: as_object(v) for k, v in value.items()})
    return [as_object(v) for v in value] if isinstance(value, list) else value


ANSWER = [
    openai("", token_ids=[]),
    openai("Hel", token_ids=[1]),
    openai("lo", token_ids=[2, 3]),
    openai(finish="stop"),
    openai(usage=3),
]


def sse(chunks: list[dict[str, Any]], done: bool = True) -> str:
    return "".join(f"data: {json.dumps(c, ensure_ascii=False)}\n\n" for c in chunks) + (
        "data: [DONE]\n\n" if done else ""
    )


@pytest.mark.parametrize(
    "form",
    [
        lambda c: c,
        as_object,
        lambda c: f"data: {json.dumps(c)}",
        lambda c: f"data: {json.dumps(c)}\n\n".encode(),
    ],
)
def test_forms_of_chunks(traced: Traced, form: Any) -> None:
    sent = [form(c) for c in ANSWER]
    got = list(wrap_stream(iter(sent), tracer=traced.tracer, request_id="r-1"))
    assert got == sent
    a = traced.attributes()
    assert traced.outcome() == ("completed", "exhausted", 5)
    assert (a["stream.characters"], a["stream.tokens.client"], a["stream.tokens.server"]) == (5, 3, 3)
    assert (a["stream.tokens.mismatch"], a["gen_ai.usage.input_tokens"], a["stream.finish_reason"]) == (
        0,
        5,
        "stop",
    )
    assert (a["request.id"], a["gen_ai.response.model"], a["gen_ai.response.id"]) == ("r-1", "m", "c1")
    events = traced.one().events
    assert [(e.attributes or {})["stream.chunk.characters"] for e in events] == [0, 3, 2, 0, 0]
    assert [(e.attributes or {}).get("stream.chunk.tokens") for e in events] == [0, 1, 2, None, None]


def test_sse_cut_anywhere(traced: Traced) -> None:
    body = sse(
        [
            openai("grüße 你好", token_ids=[1, 2]),
            openai("!", token_ids=[3]),
            openai(finish="stop"),
            openai(usage=3),
        ]
    ).encode()
    rng = random.Random(4)
    for _ in range(200):
        cuts = sorted(rng.sample(range(1, len(body)), 12))
        pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)])]
        t = Traced()
        assert b"".join(wrap_stream(pieces, tracer=t.tracer)) == body
        a = t.attributes()
        assert (a["stream.characters"], a["stream.tokens.client"], a["stream.tokens.mismatch"]) == (9, 3, 0)
        assert t.outcome()[0] == "completed"
        # A piece that is only the blank line between two events is no chunk.
        assert sum(p != b"\n" for p in pieces) <= a["stream.chunks"] <= len(pieces)


def test_lines_between_events_are_not_chunks(traced: Traced) -> None:
    lines = sse([openai("a"), openai("b", finish="stop")]).split("\n")
    assert list(wrap_stream(lines, tracer=traced.tracer)) == lines
    assert traced.outcome() == ("completed", "exhausted", 3)


def test_text_that_looks_like_the_start_of_an_event(traced: Traced) -> None:
    list(wrap_stream(["d", "a"], tracer=traced.tracer))
    assert traced.attributes()["stream.characters"] == 2


def test_mismatch_and_untold_tokens() -> None:
    t = Traced()
    list(wrap_stream([openai("a", token_ids=[1]), openai(finish="stop"), openai(usage=4)], tracer=t.tracer))
    assert t.attributes()["stream.tokens.mismatch"] == 3
    t = Traced()
    list(
        wrap_stream(
            [openai("a", token_ids=[1]), openai("b", finish="stop"), openai(usage=2)], tracer=t.tracer
        )
    )
    a = t.attributes()
    assert a["stream.tokens.client_chunks_untold"] == 1
    assert "stream.tokens.mismatch" not in a
    t = Traced()
    list(
        wrap_stream(
            [openai("a b"), openai("c", finish="stop"), openai(usage=3)],
            tracer=t.tracer,
            count_tokens=lambda s: len(s.split()),
        )
    )
    assert t.attributes()["stream.tokens.mismatch"] == 0

    def broken(text: str) -> int:
        raise KeyError(text)

    t = Traced()
    assert len(list(wrap_stream(["a"], tracer=t.tracer, count_tokens=broken))) == 1


def test_counts_stay_exact_when_events_are_aggregated(traced: Traced) -> None:
    n = 100_003
    for _ in wrap_stream(("ab" for _ in range(n)), tracer=traced.tracer, count_tokens=lambda s: 1):
        pass
    span = traced.one()
    events = [dict(e.attributes or {}) for e in span.events]
    assert len(events) < 64
    assert span.dropped_events == 0
    assert sum(e.get("stream.chunk.count", 1) for e in events) == n
    assert (
        sum(e["stream.chunk.characters"] for e in events) == 2 * n == traced.attributes()["stream.characters"]
    )
    assert sum(e["stream.chunk.tokens"] for e in events) == n == traced.attributes()["stream.tokens.client"]
    following = 0
    for e in events:
        assert e.get("stream.chunk.first_index", e.get("stream.chunk.index")) == following
        following = e.get("stream.chunk.last_index", following) + 1
    assert following == n


def test_times(traced: Traced) -> None:
    def source() -> Iterator[dict[str, Any]]:
        time.sleep(0.03)
        yield openai("")
        time.sleep(0.03)
        for _ in range(10):
            yield openai("x")
            time.sleep(0.002)
        time.sleep(0.06)
        yield openai("y", finish="stop")

    started = time.perf_counter() - 0.05
    list(wrap_stream(source(), tracer=traced.tracer, started=started))
    a = traced.attributes()
    assert 80 <= a["stream.time_to_first_chunk_ms"] < a["stream.time_to_first_text_ms"]
    assert a["gen_ai.response.time_to_first_chunk"] == pytest.approx(
        a["stream.time_to_first_chunk_ms"] / 1e3, abs=1e-5
    )
    assert 2 <= a["stream.gap_ms.p50"] < 20 < a["stream.gap_ms.p95"] <= a["stream.gap_ms.max"]
    span = traced.one()
    assert span.start_time is not None and span.end_time is not None
    assert (span.end_time - span.start_time) / 1e6 == pytest.approx(a["stream.duration_ms"], abs=0.1)


def test_gap_quantiles_are_within_one_percent() -> None:
    rng, gaps = random.Random(5), _Gaps()
    values = sorted(rng.lognormvariate(-4, 1.5) for _ in range(20_000))
    for v in values:
        gaps.add(v)
    for q in (0.5, 0.95):
        assert gaps.quantile(q) == pytest.approx(values[int(q * len(values))], rel=0.011)
    assert gaps.quantile(1.0) == pytest.approx(values[-1], rel=0.011)
    assert _Gaps().quantile(0.5) == 0


def test_end_reasons_of_synchronous_streams() -> None:
    def f(chunks: list[Any], use: Any, want: tuple[str, str, int], raises: Any = None) -> None:
        t = Traced()
        stream = wrap_stream(iter(chunks), tracer=t.tracer)
        if raises is None:
            use(stream)
        else:
            with pytest.raises(raises):
                use(stream)
        del stream
        gc.collect()
        assert t.outcome() == want
        assert (t.one().status.status_code is trace.StatusCode.ERROR) == (want[0] == "error")

    def read_one_and_close(s: Any) -> None:
        next(s)
        s.close()

    def with_error(error: BaseException) -> Any:
        def use(s: Any) -> None:
            with s:
                next(s)
                raise error

        return use

    def delegating(s: Any) -> None:
        def outer() -> Iterator[Any]:
            yield from s

        g = outer()
        next(g)
        g.close()

    def thrown(s: Any) -> None:
        def outer() -> Iterator[Any]:
            yield from s

        g = outer()
        next(g)
        g.throw(BrokenPipeError("peer"))

    f(ANSWER, list, ("completed", "exhausted", 5))
    f(ANSWER[:3], list, ("partial", "no end mark", 3))
    f(["a", "b"], list, ("completed", "exhausted", 2))
    f([], list, ("completed", "exhausted", 0))
    f(ANSWER, read_one_and_close, ("partial", "closed", 1))
    f(ANSWER[3:], read_one_and_close, ("completed", "closed after end mark", 1))
    f(ANSWER, next, ("partial", "collected", 1))
    f(ANSWER, delegating, ("partial", "closed", 1))
    f(ANSWER, thrown, ("cancelled", "disconnected", 1), BrokenPipeError)
    f(ANSWER, with_error(ValueError("x")), ("error", "exception", 1), ValueError)
    f(ANSWER, with_error(ConnectionResetError()), ("cancelled", "disconnected", 1), ConnectionResetError)
    f(ANSWER, with_error(KeyboardInterrupt()), ("cancelled", "interrupted", 1), KeyboardInterrupt)
    f(ANSWER, lambda s: (next(s), s.disconnected()), ("cancelled", "disconnected", 1))
    f([{"error": {"message": "overloaded"}}], list, ("error", "error in stream", 1))


def test_error_of_the_source_is_not_a_disconnect(traced: Traced) -> None:
    def source() -> Iterator[str]:
        yield "a"
        raise ConnectionResetError("upstream")

    with pytest.raises(ConnectionResetError):
        list(wrap_stream(source(), tracer=traced.tracer))
    assert traced.outcome() == ("error", "exception", 1)
    assert traced.attributes()["error.type"] == "ConnectionResetError"
    assert [e.name for e in traced.one().events] == ["stream.chunk", "exception"]


async def answer(pause: float = 0) -> AsyncIterator[dict[str, Any]]:
    for chunk in ANSWER:
        await asyncio.sleep(pause)
        yield chunk


def test_end_reasons_of_asynchronous_streams() -> None:
    def f(use: Any, want: tuple[str, str, int], pause: float = 0) -> None:
        async def main(t: Traced) -> None:
            stream = wrap_async_stream(answer(pause), tracer=t.tracer)
            await use(stream)
            del stream
            gc.collect()

        t = Traced()
        asyncio.run(main(t))
        assert t.outcome() == want

    async def all_of(s: Any) -> None:
        assert [c async for c in s] == ANSWER

    async def early(s: Any) -> None:
        await s.__anext__()
        await s.aclose()

    async def abandoned(s: Any) -> None:
        await s.__anext__()

    async def cancelled(s: Any) -> None:
        async def consume() -> None:
            async for _ in s:
                pass

        task = asyncio.create_task(consume())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def cancelled_in_consumer(s: Any) -> None:
        async def consume() -> None:
            async with s:
                async for _ in s:
                    await asyncio.sleep(10)

        task = asyncio.create_task(consume())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def timeout(s: Any) -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(s.__anext__(), 0.02)

    async def gone(s: Any) -> None:
        await s.__anext__()
        await s.disconnected()

    f(all_of, ("completed", "exhausted", 5))
    f(early, ("partial", "closed", 1))
    f(abandoned, ("partial", "collected", 1))
    f(cancelled, ("cancelled", "task cancelled", 1), pause=0.035)
    f(cancelled_in_consumer, ("cancelled", "task cancelled", 1))
    f(timeout, ("cancelled", "task cancelled", 0), pause=1)
    f(gone, ("cancelled", "disconnected", 1))


def test_context_stays_where_it_belongs(traced: Traced, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[int] = []

    async def source() -> AsyncIterator[str]:
        for i in range(3):
            with traced.tracer.start_as_current_span(f"inner {i}"):
                seen.append(trace.get_current_span().get_span_context().span_id)
            yield "x"

    async def consume() -> None:
        with traced.tracer.start_as_current_span("request") as request:
            async for _ in wrap_async_stream(source(), tracer=traced.tracer):
                assert trace.get_current_span() is request
                await asyncio.sleep(0)
                break  # abandoned: the loop closes the source in another context
        gc.collect()

    async def main() -> None:
        await asyncio.gather(*(consume() for _ in range(20)))

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
        gc.collect()
    assert "detach" not in caplog.text
    spans = traced.exporter.get_finished_spans()
    streams = {s.context.span_id: s for s in spans if s.name == "stream" and s.context}
    inner = [s for s in spans if s.name.startswith("inner")]
    assert (len(streams), len(inner)) == (20, 20)
    assert all(s.parent is not None and s.parent.span_id in streams for s in inner)
    assert all(s.parent is not None for s in streams.values())


def test_request_id_comes_from_baggage(traced: Traced) -> None:
    token = otel_context.attach(baggage.set_baggage("request.id", "r-77"))
    try:
        list(wrap_stream(["a"], tracer=traced.tracer))
    finally:
        otel_context.detach(token)
    assert traced.attributes()["request.id"] == "r-77"


def test_log_record_for_each_chunk(traced: Traced) -> None:
    from opentelemetry import _logs
    from opentelemetry.sdk import _logs as sdk
    from opentelemetry.sdk._logs import export

    memory = getattr(export, "InMemoryLogRecordExporter", None) or export.InMemoryLogExporter
    exporter: Any = memory()
    provider = sdk.LoggerProvider()
    provider.add_log_record_processor(export.SimpleLogRecordProcessor(exporter))
    recorder = StreamRecorder(tracer=traced.tracer, request_id="r-5", log_chunks=True, detail=0)
    recorder._log = provider.get_logger("test")
    assert isinstance(_logs.get_logger("x"), _logs.Logger)
    for i in range(200):
        recorder.chunk(f"{i:03}")
    recorder.exhausted()
    context = traced.one().context
    records = [getattr(r, "log_record", r) for r in exporter.get_finished_logs()]
    assert len(records) == 200
    assert {(r.trace_id, r.span_id, r.attributes["request.id"]) for r in records} == {
        (context.trace_id, context.span_id, "r-5")
    }
    assert [r.attributes["stream.chunk.index"] for r in records] == list(range(200))


def test_span_of_the_caller_is_used_and_left_open(traced: Traced) -> None:
    with traced.tracer.start_as_current_span("chat m") as span:
        list(wrap_stream(ANSWER, span=span))
        assert span.is_recording()
    assert traced.attributes()["stream.outcome"] == "completed"


def test_members_of_the_source_stay_reachable(traced: Traced) -> None:
    class Source:
        response = "r"

        def __iter__(self) -> Iterator[str]:
            return iter(["a"])

    stream = wrap_stream(Source(), tracer=traced.tracer)
    assert stream.response == "r"
    with pytest.raises(AttributeError):
        stream.nothing  # noqa: B018
    list(stream)
