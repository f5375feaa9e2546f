"""The worker of shop.py with the library taken out, in the forms in which one meets it.

TELEMETRY tells what it sends. "none": nothing. "logs": its log records, as a
log shipper does. "celery": Celery's own log records too. "spans": log records
and spans of its own making, called SPAN. "stock": what OpenTelemetry's
instrumentation of Celery makes. Run by test_recorded.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from typing import Any

from celery import Celery, signals
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

telemetry = os.environ["TELEMETRY"]
logger = logging.getLogger("shop")
resource = Resource.create({"service.name": os.environ["SERVICE"]})
queue = Celery("shop", broker=os.environ["BROKER"])
queue.conf.broker_connection_retry_on_startup = True
queue.conf.task_ignore_result = True

logs = LoggerProvider(resource=resource)
spans = TracerProvider(resource=resource)
if telemetry != "none":
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(), schedule_delay_millis=300))
    handler = LoggingHandler(logger_provider=logs)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    if telemetry == "celery":
        signals.after_setup_logger.connect(lambda logger, **_: logger.addHandler(handler), weak=False)
        logger.removeHandler(handler)
if telemetry in ("spans", "stock"):
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=300))
    trace.set_tracer_provider(spans)
if telemetry == "stock":
    from opentelemetry.instrumentation.celery import CeleryInstrumentor

    CeleryInstrumentor().instrument()


@signals.worker_process_shutdown.connect
def flush(**_: Any) -> None:
    logs.force_flush()
    spans.force_flush()


def span(name: str) -> contextlib.AbstractContextManager[Any]:
    if telemetry != "spans":
        return contextlib.nullcontext()
    return trace.get_tracer("shop").start_as_current_span(os.environ.get("SPAN") or name)


@queue.task(name="shop.infer", bind=True, max_retries=1)
def infer(self: Any, number: int) -> None:
    with span("infer"):
        logger.info("inferring %d", number)
        if number % 5 == 1 and not self.request.retries:
            raise self.retry(countdown=0, exc=TimeoutError("the model is slow"))
        time.sleep(0.002)
        finish.delay(number)


@queue.task(name="shop.finish")
def finish(number: int) -> None:
    with span("finish"):
        logger.info("finished %d", number)
        if number % 5 == 2:
            raise ValueError("cannot deliver")
