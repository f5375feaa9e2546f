"""OpenTelemetry processors that stamp the request on every span and log record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional

from opentelemetry.context import Context
from opentelemetry.sdk._logs import LogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from inquest import context as ctx

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadWriteLogRecord


def request_attributes(context: Optional[Context] = None) -> Iterator[tuple[str, str]]:
    """Yield the attributes that name the request of a context: request.id, user.id, biz.type."""
    request = ctx.current(context)
    if request is None:
        return
    yield ctx.REQUEST_ID, request.id
    if request.user_id:
        yield ctx.USER_ID, request.user_id
    if request.biz_type:
        yield ctx.BIZ_TYPE, request.biz_type


class RequestSpanProcessor(SpanProcessor):
    """Stamps spans as they start. An attribute that is there stays."""

    def on_start(self, span: Span, parent_context: Optional[Context] = None) -> None:
        """Set the attributes of the request in parent_context."""
        present = span.attributes or {}
        for name, value in request_attributes(parent_context):
            if name not in present:
                span.set_attribute(name, value)

    def on_end(self, span: ReadableSpan) -> None:
        """Do nothing."""

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Do nothing: nothing is held back."""
        return True


class RequestLogProcessor(LogRecordProcessor):
    """Stamps log records as they are emitted. An attribute that is there stays."""

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Set the attributes of the request in the record's context."""
        record = log_record.log_record
        attributes: Any = record.attributes
        for name, value in request_attributes(record.context):
            if name not in attributes:
                attributes[name] = value

    def emit(self, log_data: ReadWriteLogRecord) -> None:
        """Stamp a record: the method's name in SDKs before 1.38."""
        self.on_emit(log_data)

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Do nothing: nothing is held back."""
        return True
