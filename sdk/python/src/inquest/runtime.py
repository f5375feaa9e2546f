"""What init() sets up: resource, spans, the way of records to the receiver, the spool."""

from __future__ import annotations

import atexit
import contextlib
import logging
import multiprocessing.process
import multiprocessing.util
import os
import random
import socket
import threading
import time
import uuid
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional

from opentelemetry import _logs, metrics, trace
from opentelemetry import context as otel
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from inquest import otlp
from inquest._session import exporter_session
from inquest.durable import Counters, Limits, SpoolError, SpoolWriter
from inquest.processors import RequestLogProcessor, RequestSpanProcessor
from inquest.shipping import logs_url
from inquest.watchdog import Settings, Supervisor

VERSION = "0.1.0"
_ENSURE_S = 10.0  # how often a running application looks after its watchdog

_log = logging.getLogger("inquest")


@dataclass(frozen=True)
class Config:
    """Configuration of a process. Can be pickled, so that child processes get the same.

    endpoint is the base address of an OTLP/HTTP receiver; spool a folder on a
    disk that outlives the process, or None to send without keeping.
    """

    service: str
    endpoint: str = "http://localhost:4318"
    spool: Optional[str] = None
    version: Optional[str] = None
    model_version: Optional[str] = None
    resource: Mapping[str, str] = field(default_factory=dict)
    capture_input: bool = False
    linger_s: float = 24 * 3600.0
    keep_s: float = 7 * 24 * 3600.0
    interval_s: float = 0.2
    limits: Limits = field(default_factory=Limits)


class _Spans(BatchSpanProcessor):
    """Queues spans to be sent. Where a forked child gets no thread for it, they are dropped, not raised."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queue one span."""
        try:
            super().on_end(span)
        except RuntimeError as error:
            _log.warning("cannot send spans of process %d: %s", os.getpid(), error)


class Runtime:
    """A configured process. Made by init(); all methods may be called by any thread."""

    def __init__(self, config: Config) -> None:
        """Set everything up. Raises ValueError for a bad setting and SpoolError for a bad folder."""
        if not config.service:
            raise ValueError("cannot start inquest: service is empty; name the service that logs")
        logs_url(config.endpoint)
        self.config = config
        self.model_version = config.model_version or "unknown"
        self.device: Optional[str] = None
        self._closed = False
        self._files = 0
        self._writer: Optional[SpoolWriter] = None
        self._supervisor: Optional[Supervisor] = None
        try:
            self._start()
        except RuntimeError as error:
            if self._writer is not None:
                self._writer.close()
            raise RuntimeError(
                f"cannot start inquest: {error}; it needs two threads to send with: raise the limit of "
                "processes and threads (ulimit -u, pids limit of the container)"
            ) from error
        atexit.register(self.shutdown)
        # Children of multiprocessing end without running exit handlers.
        multiprocessing.util.register_after_fork(self, Runtime._shutdown_with_child)
        if multiprocessing.process.parent_process() is not None:
            self._shutdown_with_child()

    def _start(self) -> None:
        config = self.config
        values = {"service.name": config.service, "host.name": socket.gethostname(), **config.resource}
        if config.version:
            values["service.version"] = config.version
        self.resource = Resource.create(values)
        if config.spool:
            self._open_spool(Path(config.spool))
        self._refused = metrics.get_meter("inquest", VERSION).create_counter(
            "inquest.spool.refused", unit="{event}", description="events that the spool could not take"
        )
        self._start_spans()
        self._start_logs()

    def _shutdown_with_child(self) -> None:
        multiprocessing.util.Finalize(None, self.shutdown, exitpriority=10)

    def _open_spool(self, folder: Path) -> None:
        self._writer = SpoolWriter(
            folder,
            {
                "resource": {"attributes": otlp.attributes(dict(self.resource.attributes))},
                "scope": {"name": "inquest", "version": VERSION},
            },
            self.config.limits,
        )
        self._supervisor = Supervisor(
            Settings(
                folder,
                self.config.endpoint,
                interval_s=self.config.interval_s,
                linger_s=self.config.linger_s,
                keep_s=self.config.keep_s,
                max_total=self.config.limits.max_total,
            )
        )
        self._supervisor.ensure()
        self._files = self._writer.files

    def _start_spans(self) -> None:
        present = trace.get_tracer_provider()
        # One of ours is what an earlier init() left, shut down by now.
        self._own_spans = not isinstance(present, TracerProvider) or present in _made
        if isinstance(present, TracerProvider) and not self._own_spans:
            # The application has its own: its exporters stay, its spans get our attributes.
            self.tracer_provider = present
            if present not in _stamped:
                _stamped.add(present)
                present.add_span_processor(RequestSpanProcessor())
            return
        self.tracer_provider = TracerProvider(resource=self.resource, shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(RequestSpanProcessor())
        exporter = OTLPSpanExporter(
            endpoint=self.config.endpoint.rstrip("/") + "/v1/traces", session=exporter_session()
        )
        self.tracer_provider.add_span_processor(_Spans(exporter, schedule_delay_millis=1000))
        _made.add(self.tracer_provider)
        if not isinstance(present, TracerProvider):
            trace.set_tracer_provider(self.tracer_provider)

    def _start_logs(self) -> None:
        self.logger_provider = LoggerProvider(resource=self.resource, shutdown_on_exit=False)
        self.logger_provider.add_log_record_processor(RequestLogProcessor())
        exporter = OTLPLogExporter(endpoint=logs_url(self.config.endpoint), session=exporter_session())
        self.logger_provider.add_log_record_processor(
            BatchLogRecordProcessor(exporter, schedule_delay_millis=1000)
        )
        if not isinstance(_logs.get_logger_provider(), LoggerProvider):
            _logs.set_logger_provider(self.logger_provider)

    @property
    def tracer(self) -> trace.Tracer:
        """The library's own tracer."""
        return self.tracer_provider.get_tracer("inquest", VERSION)

    @property
    def counters(self) -> Counters:
        """What the spool took and refused; all zero without a spool."""
        return self._writer.counters if self._writer else Counters()

    def emit(
        self,
        body: str,
        *,
        level: str,
        attributes: Mapping[str, object],
        time_ns: int,
        span: trace.SpanContext,
        event_name: Optional[str] = None,
        sync: bool = True,
    ) -> str:
        """Write one log record and return its event id.

        With a spool: it is durable when this has returned (sync) or survives
        the process (not sync); raises SpoolError when it is neither, and counts
        that. Without: it is queued, and lost if the process dies first.
        """
        values = {**attributes, "process.pid": os.getpid()}
        if self._writer is None:
            return self._emit_directly(body, level, values, time_ns, span, event_name)
        record = otlp.log_record(
            time_ns=time_ns,
            severity=otlp.SEVERITY[level],
            severity_text=level,
            body=body,
            values=values,
            trace_id=span.trace_id,
            span_id=span.span_id,
            flags=int(span.trace_flags),
            event_name=event_name,
        )
        try:
            identity = self._writer.append(otlp.to_bytes(otlp.dumps(record)), sync=sync)
        except SpoolError as error:
            self._refused.add(1, {"error.type": type(error).__name__})
            raise
        if self._supervisor is not None:
            # A new file must have a watchdog that knows of it before we return.
            files = self._writer.files
            self._supervisor.ensure(_ENSURE_S, now=files != self._files)
            self._files = files
        return identity

    def _emit_directly(
        self,
        body: str,
        level: str,
        values: dict[str, object],
        time_ns: int,
        span: trace.SpanContext,
        event_name: Optional[str],
    ) -> str:
        identity = uuid.uuid4().hex
        context = trace.set_span_in_context(trace.NonRecordingSpan(span), otel.get_current())
        record = LogRecord(
            timestamp=time_ns,
            context=context,
            severity_text=level,
            severity_number=SeverityNumber(otlp.SEVERITY[level]),
            body=body,
            attributes={**values, "event.id": identity},  # type: ignore[dict-item]
            event_name=event_name,
        )
        self.logger_provider.get_logger("inquest", VERSION).emit(record)
        return identity

    def span_for(self, name: str) -> trace.SpanContext:
        """Return the ids of the current span; outside of any, of a span made for this moment."""
        present = trace.get_current_span().get_span_context()
        if present.is_valid:
            return present
        span = self.tracer.start_span(name, context=otel.get_current())
        span.end()
        made = span.get_span_context()
        if made.is_valid:
            return made
        # The SDK is switched off: ids are still owed to each record.
        return trace.SpanContext(random.getrandbits(128) | 1, random.getrandbits(64) | 1, is_remote=False)

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Send what is queued in this process; False when that took too long. The spool needs none."""
        until = time.monotonic() + timeout_s
        spans = _in_time(self.tracer_provider.force_flush, timeout_s)
        logs = _in_time(self.logger_provider.force_flush, max(0.1, until - time.monotonic()))
        return spans and logs

    def wait_shipped(self, timeout_s: float = 10.0) -> bool:
        """Wait until the receiver has all that the spool holds; False when that took too long."""
        from inquest import spool

        if self._writer is None:
            return self.flush(timeout_s)
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            files = list(self._writer.folder.glob("*" + spool.SUFFIX))
            if all(_shipped(path) for path in files):
                return True
            time.sleep(0.05)
        return False

    def shutdown(self) -> None:
        """Send what is queued and close the spool, whose watchdog ships the rest. May be called again."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.shutdown)
        with contextlib.suppress(Exception):
            self.flush(5.0)
        with contextlib.suppress(RuntimeError):  # threads that a forked child could not start
            if self._own_spans:
                self.tracer_provider.shutdown()
        with contextlib.suppress(RuntimeError):
            self.logger_provider.shutdown()
        if self._supervisor is not None:
            self._supervisor.ensure(now=True)
        if self._writer is not None:
            self._writer.close()
        with _lock:
            global _current
            if _current is self:
                _current = None


def _in_time(flush: Callable[[], bool], timeout_s: float) -> bool:
    """Run a flush of the SDK, which has no time limit of its own; False when it did not end in time."""
    done: list[bool] = []
    thread = threading.Thread(target=lambda: done.append(flush()), name="inquest-flush", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no more threads, or the interpreter is ending
        return bool(flush())
    thread.join(timeout_s)
    return done == [True]


def _shipped(path: Path) -> bool:
    from inquest import spool

    try:
        offset, size = spool.read_position(path)[0], path.stat().st_size
        return offset >= size or (offset == 0 and spool.read_header(path)[1] >= size)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False


_lock = threading.Lock()
_made: weakref.WeakSet[TracerProvider] = weakref.WeakSet()
_stamped: weakref.WeakSet[TracerProvider] = weakref.WeakSet()
_current: Optional[Runtime] = None


def init(
    service: Optional[str] = None,
    endpoint: Optional[str] = None,
    spool: Optional[str] = None,
    *,
    version: Optional[str] = None,
    model_version: Optional[str] = None,
    resource: Optional[Mapping[str, str]] = None,
    capture_input: bool = False,
    threads: bool = True,
    linger_s: float = 24 * 3600.0,
    keep_s: float = 7 * 24 * 3600.0,
    limits: Optional[Limits] = None,
) -> Runtime:
    """Configure this process and return its runtime. Call it once, early.

    service defaults to OTEL_SERVICE_NAME, endpoint to OTEL_EXPORTER_OTLP_ENDPOINT
    and then http://localhost:4318, spool to INQUEST_SPOOL and then none. With
    threads, threads and pools carry the request. capture_input puts raw inputs
    into ingress events. Times are in seconds. The same call again returns the
    same runtime.

    Raises ValueError for a bad setting, SpoolError for a folder that cannot be
    written, RuntimeError when the process is configured otherwise already. After
    shutdown() it can be called anew; OpenTelemetry's global tracer provider then
    remains the first one.
    """
    config = Config(
        service=service or os.environ.get("OTEL_SERVICE_NAME") or "",
        endpoint=endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or Config.endpoint,
        spool=os.path.abspath(os.fspath(spool)) if spool else os.environ.get("INQUEST_SPOOL"),
        version=version,
        model_version=model_version,
        resource=dict(resource or {}),
        capture_input=capture_input,
        linger_s=linger_s,
        keep_s=keep_s,
        limits=limits or Limits(),
    )
    if threads:
        from inquest import context

        context.instrument()
    return start(config)


def start(config: Config) -> Runtime:
    """Configure this process from a Config; see init."""
    global _current
    with _lock:
        if _current is not None:
            if _current.config == config:
                return _current
            raise RuntimeError(
                f"cannot start inquest for {config.service!r}: this process is set up for "
                f"{_current.config.service!r} already; call shutdown() first"
            )
        _current = Runtime(config)
        return _current


def current() -> Runtime:
    """Return the runtime of this process. Raises RuntimeError before init()."""
    runtime = _current
    if runtime is None:
        raise RuntimeError("cannot log: call inquest.init(service=…) first")
    return runtime


def configured() -> Optional[Runtime]:
    """Return the runtime of this process, or None before init()."""
    return _current


def shutdown() -> None:
    """End the runtime of this process, if there is one: flush and close."""
    if _current is not None:
        _current.shutdown()
