"""RQ: the request follows a job from its publisher into the worker.

``Queue(…, job_class=inquest.rq.Job)`` on the publisher's side and
``Worker(…, job_class=inquest.rq.Job)`` on the other.
"""

from __future__ import annotations

from typing import Any

import rq.job
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from inquest import context as ctx
from inquest import runtime

_META = "inquest"


class Job(rq.job.Job):
    """A job that carries the context of its publisher in its meta data and runs in a span."""

    @classmethod
    def create(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a job with the present context."""
        carrier: dict[str, str] = {}
        ctx.inject(carrier)
        kwargs["meta"] = {**(kwargs.get("meta") or {}), _META: carrier}
        return super().create(*args, **kwargs)

    def perform(self) -> Any:
        """Run the job in the carried context. What it raises is recorded and passed on."""
        process = runtime.configured()
        tracer = process.tracer if process else trace.get_tracer("inquest", runtime.VERSION)
        attributes = {
            "messaging.system": "rq",
            "messaging.operation.type": "process",
            "messaging.message.id": str(self.id),
            "messaging.destination.name": str(self.origin),
        }
        try:
            with ctx.attached(ctx.extract(self.meta.get(_META) or {})):
                name = f"run {self.func_name}"
                with tracer.start_as_current_span(name, kind=SpanKind.CONSUMER, attributes=attributes):
                    return super().perform()
        finally:
            if process is not None:
                # The work horse ends without running exit handlers.
                process.flush(5.0)
