"""Celery: the request follows a task from its publisher into the worker.

Call ``instrument()`` in the module that makes the Celery application, so that
publisher and worker both have it. The publisher's message carries traceparent,
baggage and x-request-id; the worker binds them and runs the task in a span.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from typing import Any, Optional

from celery import Task, signals
from opentelemetry import context as otel
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode

from inquest import context as ctx
from inquest import logging as logs
from inquest import runtime

_FIELDS = ("traceparent", "tracestate", "baggage", ctx.HEADER, ctx.INPUT_HASH_HEADER)
_STRATEGY, _OUR_STRATEGY = "celery.worker.strategy:default", "inquest.celery:strategy"
_MAX_OPEN = 1000  # publishes that never ended, after which the oldest is given up

_lock = threading.Lock()
_publishing: OrderedDict[str, trace.Span] = OrderedDict()
_running: dict[str, tuple[trace.Span, Any]] = {}
_instrumented = False


def instrument() -> None:
    """Connect to Celery's signals, in this process and the workers forked from it. Again: nothing."""
    global _instrumented
    if _instrumented:
        return
    _instrumented = True
    signals.before_task_publish.connect(_before_publish, weak=False)
    signals.after_task_publish.connect(_after_publish, weak=False)
    signals.task_prerun.connect(_prerun, weak=False)
    signals.task_postrun.connect(_postrun, weak=False)
    signals.task_failure.connect(_failure, weak=False)
    signals.task_retry.connect(_retry, weak=False)
    signals.worker_process_shutdown.connect(_flush, weak=False)
    signals.worker_shutdown.connect(_flush, weak=False)
    if Task.Strategy == _STRATEGY:
        Task.Strategy = _OUR_STRATEGY
    # A worker takes all handlers off the root logger, and its task loggers do not reach it.
    signals.after_setup_logger.connect(_after_setup_logger, weak=False)
    signals.after_setup_task_logger.connect(_after_setup_logger, weak=False)


def uninstrument() -> None:
    """Undo instrument()."""
    global _instrumented
    _instrumented = False
    signals.before_task_publish.disconnect(_before_publish)
    signals.after_task_publish.disconnect(_after_publish)
    signals.task_prerun.disconnect(_prerun)
    signals.task_postrun.disconnect(_postrun)
    signals.task_failure.disconnect(_failure)
    signals.task_retry.disconnect(_retry)
    signals.worker_process_shutdown.disconnect(_flush)
    signals.worker_shutdown.disconnect(_flush)
    if Task.Strategy == _OUR_STRATEGY:
        Task.Strategy = _STRATEGY
    signals.after_setup_logger.disconnect(_after_setup_logger)
    signals.after_setup_task_logger.disconnect(_after_setup_logger)


def _tracer() -> trace.Tracer:
    process = runtime.configured()
    return process.tracer if process else trace.get_tracer("inquest", runtime.VERSION)


def _before_publish(sender: Optional[str] = None, headers: Any = None, **_: Any) -> None:
    if not isinstance(headers, dict):
        return  # message protocol 1 has no headers
    span = _tracer().start_span(
        f"publish {sender}",
        kind=SpanKind.PRODUCER,
        attributes={
            "messaging.system": "celery",
            "messaging.operation.type": "send",
            "celery.task_name": str(sender),
            "messaging.message.id": str(headers.get("id", "")),
        },
    )
    carrier: dict[str, str] = {}
    ctx.inject(carrier, trace.set_span_in_context(span))
    headers.update(carrier)
    with _lock:
        _publishing[str(headers.get("id"))] = span
        forgotten = [_publishing.popitem(last=False)[1]] if len(_publishing) > _MAX_OPEN else []
    for lost in forgotten:
        lost.set_status(StatusCode.ERROR, "publish did not end")
        lost.end()


def _after_publish(headers: Any = None, routing_key: Optional[str] = None, **_: Any) -> None:
    if not isinstance(headers, dict):
        return
    with _lock:
        span = _publishing.pop(str(headers.get("id")), None)
    if span is not None:
        span.set_attribute("messaging.destination.name", str(routing_key))
        span.end()


def strategy(task: Any, app: Any, consumer: Any, **options: Any) -> Any:
    """Celery's own strategy in the context of the message: its line "Task … received" has the ids too."""
    from celery.worker.strategy import default

    handle = default(task, app, consumer, **options)

    def handle_in_context(message: Any, *arguments: Any, **more: Any) -> Any:
        with ctx.attached(_context(message.headers or {})):
            return handle(message, *arguments, **more)

    return handle_in_context


def _context(headers: Any) -> Context:
    """Return the context that a message carries; the present one where it carries none."""
    carrier = {name: value for name in _FIELDS if isinstance(value := headers.get(name), str)}
    return ctx.extract(carrier, Context()) if carrier else otel.get_current()


def _prerun(task_id: Optional[str] = None, task: Any = None, **_: Any) -> None:
    request = task.request
    # Run eagerly, a task has no headers: it is in its caller's context already.
    context = _context(request)
    info = request.get("delivery_info") or {}
    span = _tracer().start_span(
        f"run {task.name}",
        context=context,
        kind=SpanKind.CONSUMER,
        attributes={
            "messaging.system": "celery",
            "messaging.operation.type": "process",
            "messaging.message.id": str(task_id),
            "messaging.destination.name": str(info.get("routing_key") or ""),
            "celery.task_name": str(task.name),
            "celery.retries": int(request.get("retries") or 0),
        },
    )
    token = otel.attach(trace.set_span_in_context(span, context))
    with _lock:
        _running[str(task_id)] = span, token


def _postrun(task_id: Optional[str] = None, state: Optional[str] = None, **_: Any) -> None:
    with _lock:
        found = _running.pop(str(task_id), None)
    if found is None:
        return
    span, token = found
    span.set_attribute("celery.state", str(state))
    span.end()
    otel.detach(token)


def _failure(task_id: Optional[str] = None, exception: Optional[BaseException] = None, **_: Any) -> None:
    with _lock:
        found = _running.get(str(task_id))
    if found is not None and exception is not None:
        found[0].record_exception(exception)
        found[0].set_status(StatusCode.ERROR, str(exception)[:500])


def _retry(request: Any = None, reason: Any = None, **_: Any) -> None:
    with _lock:
        found = _running.get(str(getattr(request, "id", None)))
    if found is not None:
        found[0].set_attribute("decision.type", "retry")
        found[0].set_attribute("decision.reason", str(reason)[:500])


def _after_setup_logger(logger: Any = None, **_: Any) -> None:
    logs.keep(logger)


def _flush(**_: Any) -> None:
    process = runtime.configured()
    if process is not None:
        with contextlib.suppress(Exception):
            process.flush(5.0)
