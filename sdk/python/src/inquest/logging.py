"""Handler for the standard library's logging: ordinary log records with all ids."""

from __future__ import annotations

import logging
import traceback
from typing import Any, Optional

from opentelemetry import trace

from inquest import runtime
from inquest.processors import request_attributes

_STANDARD = frozenset(logging.LogRecord("", 0, "", 0, "", None, None).__dict__) | {
    "message",
    "asctime",
    "taskName",
}
# These write log records while one is being sent.
_OWN = ("inquest", "opentelemetry", "urllib3", "requests")
_MAX_EXTRA = 64
_on_root: Optional[Handler] = None
_MAX_TEXT = 64 << 10  # characters of a message or a stack


class Handler(logging.Handler):
    """Sends log records the way that events go. Does nothing before init().

    Records of durable_level and above are on the disk when the logging call
    returns; those below survive the process, not the machine's power. A record
    that cannot be written goes to handleError, as logging does it everywhere.
    """

    def __init__(self, level: int = logging.NOTSET, durable_level: int = logging.ERROR) -> None:
        """Take records of level and above."""
        super().__init__(level)
        self._durable_level = durable_level

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record."""
        process = runtime.configured()
        if process is None or record.name.split(".", 1)[0] in _OWN:
            return
        try:
            process.emit(
                record.getMessage()[:_MAX_TEXT],
                level=_level(record.levelno),
                attributes=_attributes(record),
                time_ns=int(record.created * 1e9),
                span=trace.get_current_span().get_span_context(),
                sync=record.levelno >= self._durable_level,
            )
        except Exception:  # as logging asks of every handler
            self.handleError(record)


def install(logger: Optional[logging.Logger] = None, level: int = logging.INFO) -> Handler:
    """Add a handler to a logger (default: the root) that has none yet, and return it."""
    global _on_root
    target = logger or logging.getLogger()
    for present in target.handlers:
        if isinstance(present, Handler):
            return present
    handler = Handler(level)
    target.addHandler(handler)
    if target is logging.getLogger():
        _on_root = handler
    if target.getEffectiveLevel() > level:
        target.setLevel(level)
    return handler


def keep(logger: logging.Logger) -> None:
    """Give a logger the handler that install() put on the root, where a framework keeps it from there."""
    if _on_root is not None and not any(isinstance(present, Handler) for present in logger.handlers):
        logger.addHandler(_on_root)


def _level(number: int) -> str:
    for limit, name in ((50, "FATAL"), (40, "ERROR"), (30, "WARN"), (20, "INFO"), (10, "DEBUG")):
        if number >= limit:
            return name
    return "TRACE"


def _attributes(record: logging.LogRecord) -> dict[str, Any]:
    values: dict[str, Any] = {
        "logger.name": record.name,
        "code.file.path": record.pathname,
        "code.line.number": record.lineno,
        "code.function.name": record.funcName,
        "thread.name": record.threadName,
        **dict(request_attributes()),
    }
    if record.exc_info and record.exc_info[0] is not None:
        kind, error, stack = record.exc_info
        values["exception.type"] = f"{kind.__module__}.{kind.__qualname__}"
        values["exception.message"] = str(error)[:_MAX_TEXT]
        values["exception.stacktrace"] = "".join(traceback.format_exception(kind, error, stack))[:_MAX_TEXT]
    own = [item for item in record.__dict__.items() if item[0] not in _STANDARD]
    for name, value in own[:_MAX_EXTRA]:
        values.setdefault(name, value if isinstance(value, (str, bool, int, float)) else str(value))
    return values
