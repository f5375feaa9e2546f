"""inquest: event logger and instrumentation for AI services.

``inquest.init(service=…)`` once, ``inquest.EventLogger()`` where events are
written. See the README for the rest. Names are loaded when first used, so that
importing the package, as the watchdog does, costs little.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name → module that has it.
_HOMES = {
    "EventLogger": "events",
    "EventTooLargeError": "durable",
    "Limits": "durable",
    "ProcessPoolExecutor": "processes",
    "Request": "context",
    "Runtime": "runtime",
    "SpoolError": "durable",
    "SpoolFullError": "durable",
    "Thread": "context",
    "ThreadPoolExecutor": "context",
    "attached": "context",
    "bound": "context",
    "carried": "context",
    "extract": "context",
    "init": "runtime",
    "inject": "context",
    "instrument": "context",
    "instrumented_init": "init",
    "request": "context",
    "request_id": "context",
    "shutdown": "runtime",
    "tensor_stats": "tensors",
    "uninstrument": "context",
    "wrap_async_stream": "streaming",
    "wrap_stream": "streaming",
}

__all__ = [
    "EventLogger",
    "EventTooLargeError",
    "Limits",
    "ProcessPoolExecutor",
    "Request",
    "Runtime",
    "SpoolError",
    "SpoolFullError",
    "Thread",
    "ThreadPoolExecutor",
    "__version__",
    "attached",
    "bound",
    "carried",
    "extract",
    "init",
    "inject",
    "instrument",
    "instrumented_init",
    "request",
    "request_id",
    "shutdown",
    "tensor_stats",
    "uninstrument",
    "wrap_async_stream",
    "wrap_stream",
]

if TYPE_CHECKING:
    from inquest.context import (
        Request,
        Thread,
        ThreadPoolExecutor,
        attached,
        bound,
        carried,
        extract,
        inject,
        instrument,
        request,
        request_id,
        uninstrument,
    )
    from inquest.durable import EventTooLargeError, Limits, SpoolError, SpoolFullError
    from inquest.events import EventLogger
    from inquest.init import instrumented_init
    from inquest.processes import ProcessPoolExecutor
    from inquest.runtime import Runtime, init, shutdown
    from inquest.streaming import wrap_async_stream, wrap_stream
    from inquest.tensors import tensor_stats


class _Package(types.ModuleType):
    """This package. Importing its module ``init`` must not hide the function ``init``."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name == "init" and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
