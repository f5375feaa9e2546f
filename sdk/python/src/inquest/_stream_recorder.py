"""The record of one stream: counts, times, tokens and how it ended."""

from __future__ import annotations

import asyncio
import functools
import math
import os
import time
from collections.abc import Mapping
from typing import Any, Callable, Optional, Union

from opentelemetry import _logs, baggage, metrics, trace
from opentelemetry.trace import Span, Status, StatusCode, Tracer

from ._stream_chunks import ChunkInfo, ChunkReader

__all__ = ["StreamRecorder"]

AttributeValue = Union[str, bool, int, float]

_SCOPE = "inquest.streaming"
_CANCELS = ("Cancelled", "CancelledError")
_DISCONNECTS = (
    "ClientDisconnect",
    "ClientDisconnected",
    "WebSocketDisconnect",
    "ConnectionClosed",
    "ConnectionClosedOK",
)


class _Gaps:
    """Times between chunks: quantiles within 1 % in bounded memory (logarithmic buckets)."""

    _GAMMA = math.log(1.02)

    def __init__(self) -> None:
        self.count = 0
        self.longest = 0.0
        self._buckets: dict[int, int] = {}

    def add(self, seconds: float) -> None:
        self.count += 1
        self.longest = max(self.longest, seconds)
        key = math.floor(math.log(max(seconds, 1e-9)) / self._GAMMA)
        self._buckets[key] = self._buckets.get(key, 0) + 1

    def quantile(self, q: float) -> float:
        """Return the q-quantile in seconds (nearest rank); 0 without gaps."""
        rank, seen = max(1, math.ceil(q * self.count)), 0
        for key in sorted(self._buckets):
            seen += self._buckets[key]
            if seen >= rank:
                return min(math.exp((key + 0.5) * self._GAMMA), self.longest)
        return 0.0


class _Window:
    """The chunks that one ``stream.chunks`` event stands for."""

    def __init__(self, first: int, size: int, at: float) -> None:
        self.first, self.size, self.start = first, size, at
        self.count = self.characters = self.tokens = 0
        self.longest = 0.0


class StreamRecorder:
    """Records one stream; for streams that are not iterators, call it directly.

    ``chunk`` for each chunk, then ``finish`` once; both are cheap and never
    raise because of the data. Not safe for concurrent use.
    """

    def __init__(
        self,
        name: str = "stream",
        *,
        span: Optional[Span] = None,
        request_id: Optional[str] = None,
        detail: int = 32,
        log_chunks: bool = False,
        count_tokens: Optional[Callable[[str], int]] = None,
        started: Optional[float] = None,
        attributes: Optional[Mapping[str, AttributeValue]] = None,
        tracer: Optional[Tracer] = None,
    ) -> None:
        """Start the record, and with it the span.

        Args:
            name: the span's name.
            span: record on this span, which the caller ends, instead of a new one.
            request_id: default is the baggage member ``request.id``.
            detail: chunks with an event of their own; at most a quarter of the span's event limit.
            log_chunks: also emit a log record for each chunk.
            count_tokens: counts the tokens of a chunk's text where the chunk does not list them.
            started: ``time.perf_counter()`` when the request was sent; default is now.
            attributes: further attributes of the span.
            tracer: default is the global provider's.
        """
        self._perf = time.perf_counter() if started is None else started
        self._wall = time.time_ns() - int((time.perf_counter() - self._perf) * 1e9)
        tracer = tracer or trace.get_tracer(_SCOPE)
        self._owns_span = span is None
        self.span: Span = span if span is not None else tracer.start_span(name, start_time=self._wall)
        self.context = trace.set_span_in_context(self.span)
        if request_id is None:
            found = baggage.get_baggage("request.id")
            request_id = found if isinstance(found, str) else None
        self.request_id = request_id
        self._log = _logs.get_logger(_SCOPE) if log_chunks else None
        limit = os.environ.get("OTEL_SPAN_EVENT_COUNT_LIMIT", "")
        self._detail = max(0, min(detail, (int(limit) if limit.isdigit() else 128) // 4))
        self._count_tokens = count_tokens
        self._reader = ChunkReader()
        self._seen = ChunkInfo()
        self._gaps = _Gaps()
        self._window: Optional[_Window] = None
        self._last = self._first_chunk = self._first_text = -1.0
        self._characters = self._tokens = self._untold = self._events = 0
        self.chunks = 0
        self.outcome: Optional[str] = None
        if request_id is not None:
            self.span.set_attribute("request.id", request_id)
        for key, value in (attributes or {}).items():
            self.span.set_attribute(key, value)

    def chunk(self, chunk: Any) -> None:
        """Record a chunk as it arrives."""
        if self.outcome is not None:
            return
        now = time.perf_counter() - self._perf
        info = self._reader.read(chunk)
        if info.separator:
            return
        tokens = self._tokens_of(info)
        index, self.chunks = self.chunks, self.chunks + 1
        gap = now - self._last if index else 0.0
        if index:
            self._gaps.add(gap)
        else:
            self._first_chunk = now
        if info.characters and self._first_text < 0:
            self._first_text = now
        self._last = now
        self._characters += info.characters
        self._tokens += tokens or 0
        if info.characters and tokens is None:
            self._untold += 1
        self._seen.text = ""
        info.text = ""  # the text itself is never kept
        self._seen.add(info)
        if index < self._detail:
            self._event("stream.chunk", now, self._chunk_attributes(index, now, info, tokens))
        else:
            self._aggregate(index, now, gap, info, tokens)
        if self._log is not None:
            self._log_chunk(now, self._chunk_attributes(index, now, info, tokens))

    def _tokens_of(self, info: ChunkInfo) -> Optional[int]:
        if info.tokens is not None or self._count_tokens is None or not info.text:
            return info.tokens
        try:
            return int(self._count_tokens(info.text))
        except Exception:  # the caller's tokenizer must not break the caller's stream
            return None

    def _chunk_attributes(
        self, index: int, now: float, info: ChunkInfo, tokens: Optional[int]
    ) -> dict[str, AttributeValue]:
        attributes: dict[str, AttributeValue] = {
            "stream.chunk.index": index,
            "stream.chunk.ms": round(now * 1e3, 3),
            "stream.chunk.characters": info.characters,
        }
        if tokens is not None:
            attributes["stream.chunk.tokens"] = tokens
        return attributes

    def _event(self, name: str, at: float, attributes: Mapping[str, AttributeValue]) -> None:
        self._events += 1
        self.span.add_event(name, attributes, timestamp=self._wall + int(at * 1e9))

    def _aggregate(self, index: int, now: float, gap: float, info: ChunkInfo, tokens: Optional[int]) -> None:
        window = self._window
        if window is None:
            window = self._window = _Window(index, max(index, 1), now)
        window.count += 1
        window.characters += info.characters
        window.tokens += tokens or 0
        window.longest = max(window.longest, gap)
        if window.count >= window.size:
            self._flush_window()

    def _flush_window(self) -> None:
        window, self._window = self._window, None
        if window is None:
            return
        attributes: dict[str, AttributeValue] = {
            "stream.chunk.first_index": window.first,
            "stream.chunk.last_index": window.first + window.count - 1,
            "stream.chunk.count": window.count,
            "stream.chunk.characters": window.characters,
            "stream.chunk.first_ms": round(window.start * 1e3, 3),
            "stream.chunk.last_ms": round(self._last * 1e3, 3),
            "stream.chunk.longest_gap_ms": round(window.longest * 1e3, 3),
        }
        if window.tokens:
            attributes["stream.chunk.tokens"] = window.tokens
        self._event("stream.chunks", self._last, attributes)

    def _log_chunk(self, now: float, attributes: dict[str, AttributeValue]) -> None:
        assert self._log is not None
        if self.request_id is not None:
            attributes["request.id"] = self.request_id
        record = _logs.LogRecord(
            timestamp=self._wall + int(now * 1e9),
            context=self.context,
            severity_number=_logs.SeverityNumber.DEBUG,
            attributes=attributes,
            event_name="stream.chunk",
        )
        self._log.emit(record)

    def exhausted(self) -> None:
        """Record that the source ended by itself."""
        if self._seen.error is not None:
            self.finish("error", "error in stream")
        elif self._seen.expects_end and not self._seen.done:
            self.finish("partial", "no end mark")
        else:
            self.finish("completed", "exhausted")

    def closed(self, reason: str = "closed") -> None:
        """Record that the consumer stopped reading; complete only after the protocol's end mark."""
        if self._seen.done and self._seen.error is None:
            self.finish("completed", "closed after end mark")
        else:
            self.finish("partial", reason)

    def failed(self, error: BaseException, *, by_consumer: bool = False) -> None:
        """Record that the source raised ``error``, or the consumer while it handled a chunk."""
        if isinstance(error, GeneratorExit):
            self.closed("generator closed")
        elif isinstance(error, asyncio.CancelledError) or type(error).__name__ in (
            "Cancelled",
            "CancelledError",
        ):
            self.finish("cancelled", "task cancelled")
        elif by_consumer and (
            isinstance(error, (BrokenPipeError, ConnectionResetError)) or type(error).__name__ in _DISCONNECTS
        ):
            self.finish("cancelled", "disconnected", error)
        elif isinstance(error, KeyboardInterrupt):
            self.finish("cancelled", "interrupted")
        else:
            self.finish("error", "exception", error)

    def finish(self, outcome: str, reason: str, error: Optional[BaseException] = None) -> None:
        """Record the end. Only the first end counts."""
        if self.outcome is not None:
            return
        self.outcome = outcome
        end = time.perf_counter() - self._perf
        self._flush_window()
        self._characters += self._reader.undecided()
        span, seen = self.span, self._seen
        attributes: dict[str, AttributeValue] = {
            "stream.outcome": outcome,
            "stream.end_reason": reason,
            "stream.chunks": self.chunks,
            "stream.characters": self._characters,
            "stream.duration_ms": round(end * 1e3, 3),
        }
        if self.chunks:
            attributes["stream.time_to_first_chunk_ms"] = round(self._first_chunk * 1e3, 3)
            attributes["gen_ai.response.time_to_first_chunk"] = round(self._first_chunk, 6)
            attributes["stream.silence_at_end_ms"] = round((end - self._last) * 1e3, 3)
        if self._first_text >= 0:
            attributes["stream.time_to_first_text_ms"] = round(self._first_text * 1e3, 3)
        if self._gaps.count:
            attributes["stream.gap_ms.p50"] = round(self._gaps.quantile(0.50) * 1e3, 3)
            attributes["stream.gap_ms.p95"] = round(self._gaps.quantile(0.95) * 1e3, 3)
            attributes["stream.gap_ms.max"] = round(self._gaps.longest * 1e3, 3)
        self._add_tokens(attributes, outcome)
        for key, value in (
            ("gen_ai.response.model", seen.model),
            ("gen_ai.response.id", seen.response_id),
            ("stream.finish_reason", seen.finish_reason),
            ("stream.server_error", seen.error),
        ):
            if value is not None:
                attributes[key] = value
        span.set_attributes(attributes)
        if error is not None:
            span.record_exception(error)
        if outcome == "error":
            span.set_attribute("error.type", type(error).__qualname__ if error is not None else "stream")
            span.set_status(Status(StatusCode.ERROR, str(error) if error is not None else seen.error))
        if self._owns_span:
            span.end(self._wall + int(end * 1e9))
        self._measure(outcome, end)

    def _add_tokens(self, attributes: dict[str, AttributeValue], outcome: str) -> None:
        told = self._tokens > 0 or (self._untold == 0 and self._characters > 0)
        if told:
            attributes["stream.tokens.client"] = self._tokens
            if self._untold:
                attributes["stream.tokens.client_chunks_untold"] = self._untold
        if self._seen.input_tokens is not None:
            attributes["gen_ai.usage.input_tokens"] = self._seen.input_tokens
        if self._seen.output_tokens is not None:
            attributes["stream.tokens.server"] = self._seen.output_tokens
            attributes["gen_ai.usage.output_tokens"] = self._seen.output_tokens
            # A stream that was cut off, or chunks that do not tell, cannot disagree.
            if told and not self._untold and outcome == "completed":
                attributes["stream.tokens.mismatch"] = self._seen.output_tokens - self._tokens

    def _measure(self, outcome: str, end: float) -> None:
        labels: dict[str, AttributeValue] = {"stream.outcome": outcome}
        if self._seen.model is not None:
            labels["gen_ai.response.model"] = self._seen.model
        instruments = _instruments()
        instruments[0].add(1, labels, context=self.context)
        if self.chunks:
            instruments[1].record(self._first_chunk, labels, context=self.context)
        if self.chunks > 1:
            mean = (self._last - self._first_chunk) / (self.chunks - 1)
            instruments[2].record(mean, labels, context=self.context)


@functools.lru_cache(maxsize=1)
def _instruments() -> tuple[metrics.Counter, metrics.Histogram, metrics.Histogram]:
    # Made once: without an SDK each creation would be kept for a provider that
    # may come later.
    meter = metrics.get_meter(_SCOPE)
    return (
        meter.create_counter("inquest.streams", "{stream}", "Streams by outcome"),
        meter.create_histogram("gen_ai.client.operation.time_to_first_chunk", "s"),
        meter.create_histogram("inquest.stream.mean_time_between_chunks", "s"),
    )
