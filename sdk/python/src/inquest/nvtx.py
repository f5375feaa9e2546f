"""NVTX ranges and spans: both at once while the program runs, and from a profile afterwards.

``with range("prefill"):`` opens a span and, where the ``nvtx`` package is installed
or PyTorch can use CUDA, an NVTX range with the same name. The range's text ends
in ``#<trace id>:<span id>``, so that a profile of Nsight Systems can be joined to the
trace: ``export_spans("report.sqlite")`` reads the ranges of an
``nsys export --type=sqlite report.nsys-rep`` and makes spans of them, below the spans
that the program itself had.

Tested without a GPU: ``range`` with the real ``nvtx`` package (whose calls do nothing
unless a profiler is attached), and the conversion with files made to the
documented schema. **Not seen by any GPU yet:** ranges in a running profiler, the
``torch.cuda.nvtx`` way, and an export that nsys itself wrote.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar, Union

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, TraceFlags, Tracer

from ._nsys import NvtxEvent, read_events, session_epoch_ns

__all__ = ["ExportSummary", "annotate", "backend", "export_spans", "range"]

F = TypeVar("F", bound=Callable[..., Any])
AttributeValue = Union[str, bool, int, float]

_SCOPE = "inquest.nvtx"
_LINK = re.compile(r"#([0-9a-f]{32}):([0-9a-f]{16})$")
_MAX_NAME = 256
_MAX_DEPTH = 512
_FLUSH_EVERY = 500  # below the 2,048 spans that the SDK's batch processor holds
_MAX_MARKS = 100  # below the SDK's limit of 128 events a span


@dataclass(frozen=True)
class _Backend:
    name: str
    push: Callable[[str], Any]
    pop: Callable[[], Any]
    start: Callable[[str], Any]
    end: Callable[[Any], Any]


@functools.lru_cache(maxsize=1)
def _nvtx_package() -> Optional[_Backend]:
    try:
        import nvtx
    except ImportError:
        return None
    return _Backend("nvtx", nvtx.push_range, nvtx.pop_range, nvtx.start_range, nvtx.end_range)


def _torch_cuda() -> Optional[_Backend]:
    torch = sys.modules.get("torch")  # a program that does not use PyTorch must not pay for its import
    try:
        if torch is None or not torch.cuda.is_available():
            return None
        api = torch.cuda.nvtx
        return _Backend("torch", api.range_push, api.range_pop, api.range_start, api.range_end)
    except Exception:
        return None


def _find_backend() -> Optional[_Backend]:
    return _nvtx_package() or _torch_cuda()


def backend() -> Optional[str]:
    """Return what makes the NVTX ranges: ``nvtx``, ``torch``, or None when only spans are made."""
    found = _find_backend()
    return None if found is None else found.name


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def range(
    name: str,
    *,
    attributes: Optional[Mapping[str, AttributeValue]] = None,
    link: bool = True,
    tracer: Optional[Tracer] = None,
) -> Iterator[Span]:
    """Open a span and, where possible, an NVTX range of the same name; yield the span.

    In a thread it is a push/pop range, to which profilers assign the kernels
    that are launched inside. In an event loop, where tasks take turns and would
    pop each other's ranges, it is a start/end range. A GPU works
    asynchronously: the span has the time of the calls, not of the kernels.

    Args:
        name: name of both.
        attributes: attributes of the span.
        link: append the span's ids to the range's text.
        tracer: default is the global provider's.
    """
    tracer = tracer or trace.get_tracer(_SCOPE)
    with tracer.start_as_current_span(name, attributes=dict(attributes or {})) as span:
        ranges = _find_backend()
        if ranges is None:
            yield span
            return
        context = span.get_span_context()
        text = name[:_MAX_NAME]
        if link and context.is_valid:
            text = f"{text}#{context.trace_id:032x}:{context.span_id:016x}"
        span.set_attribute("nvtx.backend", ranges.name)
        if _in_event_loop():
            handle = ranges.start(text)
            try:
                yield span
            finally:
                ranges.end(handle)
            return
        ranges.push(text)
        try:
            yield span
        finally:
            ranges.pop()


def annotate(name: Optional[str] = None, **options: Any) -> Callable[[F], F]:
    """Return a decorator that runs each call of a function or coroutine in a ``range``."""

    def decorate(function: F) -> F:
        label = name or function.__qualname__
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                with range(label, **options):
                    return await function(*args, **kwargs)

            return call_async  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with range(label, **options):
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


@dataclass
class ExportSummary:
    """What ``export_spans`` read and made; the numbers add up to what the file holds."""

    spans: int = 0
    """Spans made for ranges."""
    joined: int = 0
    """Ranges that the program's own span stands for, so that no second span was made."""
    marks: int = 0
    """Marks that became span events."""
    marks_dropped: int = 0
    """Marks beyond 100 in one range, or outside of any; their number stands on the span or here."""
    unfinished: int = 0
    """Ranges among ``spans`` that were open when the capture ended."""
    not_exported: int = 0
    """Ranges beyond ``max_spans``."""


@dataclass
class _Open:
    """A range whose span is not ended yet; ``span`` is None for a joined one."""

    event: NvtxEvent
    end: int
    context: Context
    span: Optional[Span]
    marks: int = 0
    dropped: int = 0


@dataclass
class _Thread:
    key: Optional[tuple[int, int]] = None
    stack: list[_Open] = field(default_factory=list)


class _Exporter:
    def __init__(
        self, tracer: Tracer, epoch: int, root: Context, join: bool, flush: Callable[[], Any], limit: int
    ):
        self.summary = ExportSummary()
        self._tracer = tracer
        self._epoch = epoch
        self._root = root
        self._join = join
        self._flush = flush
        self._limit = limit
        self._thread = _Thread()

    def add(self, event: NvtxEvent) -> None:
        if (event.pid, event.tid) != self._thread.key:
            self.close(None)
            self._thread.key = (event.pid, event.tid)
        self.close(event.start)
        if event.end is None:
            self._mark(event)
        else:
            self._range(event, event.end)

    def close(self, before: Optional[int]) -> None:
        """End the ranges that were over at ``before``; all of them for None."""
        stack = self._thread.stack
        while stack and (before is None or stack[-1].end <= before):
            top = stack.pop()
            if top.span is not None:
                if top.dropped:
                    top.span.set_attribute("nvtx.marks_dropped", top.dropped)
                top.span.end(self._epoch + top.end)

    def _range(self, event: NvtxEvent, end: int) -> None:
        stack = self._thread.stack
        # Only nested ranges have parents; a process range may overlap anything.
        parent = stack[-1].context if event.nested and stack else self._root
        name, context = event.name, parent
        link = _LINK.search(event.name)
        if link is not None:
            name = event.name[: link.start()]
            own = SpanContext(
                int(link.group(1), 16), int(link.group(2), 16), is_remote=True, trace_flags=TraceFlags(1)
            )
            if self._join and own.is_valid:
                self.summary.joined += 1
                if event.nested and len(stack) < _MAX_DEPTH:
                    stack.append(_Open(event, end, trace.set_span_in_context(NonRecordingSpan(own)), None))
                return
        if self.summary.spans >= self._limit:
            self.summary.not_exported += 1
            return
        attributes: dict[str, Any] = {"process.pid": event.pid, "thread.id": event.tid, **event.attributes}
        if event.domain:
            attributes["nvtx.domain"] = event.domain
        if event.unfinished:
            attributes["nvtx.unfinished"] = True
            self.summary.unfinished += 1
        span = self._tracer.start_span(
            name or "(unnamed)", context=context, attributes=attributes, start_time=self._epoch + event.start
        )
        self.summary.spans += 1
        if event.nested and len(stack) < _MAX_DEPTH:
            stack.append(_Open(event, end, trace.set_span_in_context(span), span))
        else:
            span.end(self._epoch + end)
        if self.summary.spans % _FLUSH_EVERY == 0:
            self._flush()

    def _mark(self, event: NvtxEvent) -> None:
        holder = next((o for o in reversed(self._thread.stack) if o.span is not None), None)
        if holder is None or holder.span is None:
            self.summary.marks_dropped += 1
        elif holder.marks >= _MAX_MARKS:
            holder.dropped += 1
            self.summary.marks_dropped += 1
        else:
            holder.marks += 1
            self.summary.marks += 1
            holder.span.add_event(event.name, event.attributes, timestamp=self._epoch + event.start)


def export_spans(
    path: Union[str, PathLike[str]],
    *,
    provider: Optional[trace.TracerProvider] = None,
    parent: Optional[Context] = None,
    epoch_ns: Optional[int] = None,
    join: bool = True,
    max_spans: int = 1_000_000,
) -> ExportSummary:
    """Make spans of the NVTX ranges in a file of ``nsys export --type=sqlite``.

    A range that ``range`` made stands for the program's own span: what nests
    below it in its thread becomes that span's child. Other outermost ranges are
    children of ``parent``, or of one span for the whole capture. Start/end ranges
    never get a parent among the ranges. Spans are flushed as they are made, so
    that the SDK's queue does not overflow.

    Args:
        path: the SQLite file; it is only read.
        provider: makes and exports the spans; default is the global one.
        parent: context whose span is the parent of what has none.
        epoch_ns: Unix nanoseconds of the session's start, for exports that do not tell.
        join: False makes a second span for linked ranges too.
        max_spans: further ranges are counted, not exported.

    Raises:
        ValueError: the file has no NVTX events, or does not tell its start and neither do you.
        sqlite3.Error: the file is no SQLite database.
    """
    file = Path(fspath(path))
    if not file.is_file():
        raise FileNotFoundError(f"cannot read {file}: no such file")
    epoch = epoch_ns if epoch_ns is not None else session_epoch_ns(file)
    if epoch is None:
        raise ValueError(
            f"cannot place {file} in time: it has no TARGET_INFO_SESSION_START_TIME; pass epoch_ns"
        )
    provider = provider or trace.get_tracer_provider()
    tracer = provider.get_tracer(_SCOPE)
    flush = getattr(provider, "force_flush", None) or (lambda: None)
    events = read_events(file)
    first = next(events, None)
    if first is None:
        return ExportSummary()
    capture: Optional[Span] = None
    if parent is None:
        # Named at once, timed at the end: the first thread need not have the first range.
        capture = tracer.start_span(f"nsys {file.stem}", context=Context(), start_time=epoch)
        parent = trace.set_span_in_context(capture, Context())
    exporter = _Exporter(tracer, epoch, parent, join, flush, max_spans)
    last = 0
    for event in itertools.chain((first,), events):
        last = max(last, event.start if event.end is None else event.end)
        exporter.add(event)
    exporter.close(None)
    if capture is not None:
        capture.set_attribute("nsys.ranges", exporter.summary.spans + exporter.summary.joined)
        capture.end(epoch + last)
    flush()
    return exporter.summary
