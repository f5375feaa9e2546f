"""One request id through everything that a request does.

The id lies in the OpenTelemetry context, as baggage member ``request.id``, so
it goes wherever that context goes: coroutines and tasks by themselves, threads
and pools by the classes here or ``instrument()``, other processes and task
queues by ``inject`` and ``extract``. An id that came from outside is kept as it
is. Beside it lies a Request, shared by all that serve the request in this
process, with what later events need from the first one.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from concurrent import futures
from dataclasses import dataclass
from typing import Any, Callable, Optional, TypeVar

from opentelemetry import baggage, trace
from opentelemetry import context as otel
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

T = TypeVar("T")

HEADER = "x-request-id"
INPUT_HASH_HEADER = "x-inquest-input-hash"
REQUEST_ID = "request.id"
USER_ID = "user.id"
BIZ_TYPE = "biz.type"
MAX_ID = 256  # characters

_KEY = otel.create_key("inquest-request")
_W3C = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])


@dataclass
class Request:
    """What is known of the request being served; input_hash comes with the ingress event."""

    id: str
    user_id: Optional[str] = None
    biz_type: Optional[str] = None
    input_hash: Optional[str] = None


def new_request_id() -> str:
    """Return an id that no other request has."""
    return "r-" + secrets.token_hex(16)


def valid_request_id(value: Optional[str]) -> bool:
    """Tell whether an id from outside can be kept: 1 to 256 characters, none of them control or blank."""
    return bool(value) and len(value or "") <= MAX_ID and all(" " < char != "\x7f" for char in value or "")


def current(context: Optional[Context] = None) -> Optional[Request]:
    """Return the request of a context (default: the current one), or None outside of any."""
    request = otel.get_value(_KEY, context)
    if isinstance(request, Request):
        return request
    value = baggage.get_baggage(REQUEST_ID, context)
    if not isinstance(value, str) or not valid_request_id(value):
        return None
    return Request(value, _text(USER_ID, context), _text(BIZ_TYPE, context))


def request_id(context: Optional[Context] = None) -> Optional[str]:
    """Return the request id of a context (default: the current one), or None."""
    request = current(context)
    return request.id if request else None


def _text(name: str, context: Optional[Context]) -> Optional[str]:
    value = baggage.get_baggage(name, context)
    return value if isinstance(value, str) and value else None


def with_request(request: Request, context: Optional[Context] = None) -> Context:
    """Return a context that carries the request, here and to other processes."""
    context = otel.set_value(_KEY, request, context)
    for name, value in ((REQUEST_ID, request.id), (USER_ID, request.user_id), (BIZ_TYPE, request.biz_type)):
        if value:
            context = baggage.set_baggage(name, value, context)
    return context


@contextlib.contextmanager
def attached(context: Context) -> Iterator[None]:
    """Make a context the current one for a block."""
    token = otel.attach(context)
    try:
        yield
    finally:
        otel.detach(token)


@contextlib.contextmanager
def request(
    id: Optional[str] = None, *, user_id: Optional[str] = None, biz_type: Optional[str] = None
) -> Iterator[Request]:
    """Serve one request in a block: its id is on every record made inside.

    Without an id the one that came with the context is kept, and one is made
    where there is none. Where no span of this process is current, after init()
    one is started, so that all the request does is one trace. Raises ValueError
    for an id that cannot be carried.
    """
    if id is not None and not valid_request_id(id):
        raise ValueError(
            f"cannot use request id {id[:40]!r}: want 1 to {MAX_ID} printable characters, no blank"
        )
    before = current()
    made = Request(id or (before.id if before else new_request_id()), user_id, biz_type)
    if before and before.id == made.id:
        made.user_id = user_id or before.user_id
        made.biz_type = biz_type or before.biz_type
        made.input_hash = before.input_hash
    with attached(with_request(made)), _span_of_request():
        yield made


@contextlib.contextmanager
def _span_of_request() -> Iterator[None]:
    present = trace.get_current_span().get_span_context()
    runtime = sys.modules.get("inquest.runtime")  # it imports this module
    process = runtime.configured() if runtime else None
    if process is None or (present.is_valid and not present.is_remote):
        yield
        return
    with process.tracer.start_as_current_span("request"):
        yield


def inject(carrier: MutableMapping[str, str], context: Optional[Context] = None) -> None:
    """Write traceparent, baggage and x-request-id of a context into headers."""
    found = current(context)
    if found is not None:
        # Anew: the ingress event may have told the user since the request was bound.
        context = with_request(found, context)
    _W3C.inject(carrier, context)
    if found is not None:
        carrier[HEADER] = found.id
        if found.input_hash:
            carrier[INPUT_HASH_HEADER] = found.input_hash


def extract(carrier: Mapping[str, str], context: Optional[Context] = None) -> Context:
    """Return a context with what headers (names in lower case) carry; x-request-id wins over baggage."""
    context = _W3C.extract(carrier, context)
    value = carrier.get(HEADER)
    found = current(context)
    if value and valid_request_id(value) and (found is None or found.id != value):
        found = Request(value, _text(USER_ID, context), _text(BIZ_TYPE, context))
    if found is None:
        return context
    found.input_hash = found.input_hash or carrier.get(INPUT_HASH_HEADER)
    return with_request(found, context)


def bound(function: Callable[..., T]) -> Callable[..., T]:
    """Return the function bound to the present context, for callbacks and threads of this process."""
    context = otel.get_current()

    def call(*args: Any, **kwargs: Any) -> T:
        with attached(context):
            return function(*args, **kwargs)

    return call


@dataclass(frozen=True)
class Carried:
    """A function with the headers of the context it was made in. Can be pickled if the function can."""

    function: Callable[..., Any]
    carrier: Mapping[str, str]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function in the carried context."""
        with attached(extract(self.carrier)):
            return self.function(*args, **kwargs)


def carried(function: Callable[..., Any]) -> Carried:
    """Return the function with the present context, for another process."""
    carrier: dict[str, str] = {}
    inject(carrier)
    return Carried(function, carrier)


def _in_request() -> bool:
    return current() is not None or trace.get_current_span().get_span_context().is_valid


def _bind_run(thread: threading.Thread) -> None:
    if _in_request():
        thread.run = bound(thread.run)  # type: ignore[method-assign]


class Thread(threading.Thread):
    """A thread that runs in the context of the one that started it."""

    def start(self) -> None:
        """Start the thread in the present context."""
        _bind_run(self)
        super().start()


class ThreadPoolExecutor(futures.ThreadPoolExecutor):
    """A thread pool whose calls run in the context of their submitter."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> futures.Future[T]:
        """Submit a call in the present context."""
        return super().submit(bound(fn), *args, **kwargs)


_originals: dict[tuple[type, str], Any] = {}


def instrument() -> None:
    """Let every thread, thread pool and process pool of this process carry the context.

    A thread started inside a request keeps that request for its whole life: start
    long-lived workers before, or hand each piece of work over with ``bound``.
    Calling it again changes nothing.
    """
    if _originals:
        return
    start, submit = threading.Thread.start, futures.ThreadPoolExecutor.submit
    process_submit = futures.ProcessPoolExecutor.submit

    def start_bound(self: threading.Thread) -> None:
        _bind_run(self)
        start(self)

    def submit_bound(
        self: futures.ThreadPoolExecutor, fn: Callable[..., T], /, *args: Any, **kwargs: Any
    ) -> Any:
        # The pool's own thread is started outside, or it would keep its first request.
        call = bound(fn)
        with attached(Context()):
            return submit(self, call, *args, **kwargs)

    def submit_carried(
        self: futures.ProcessPoolExecutor, fn: Callable[..., T], /, *args: Any, **kwargs: Any
    ) -> Any:
        call = fn if isinstance(fn, Carried) else carried(fn)
        with attached(Context()):
            return process_submit(self, call, *args, **kwargs)

    _patch(threading.Thread, "start", start_bound)
    _patch(futures.ThreadPoolExecutor, "submit", submit_bound)
    _patch(futures.ProcessPoolExecutor, "submit", submit_carried)


def uninstrument() -> None:
    """Undo instrument()."""
    for (owner, name), original in _originals.items():
        setattr(owner, name, original)
    _originals.clear()


def _patch(owner: type, name: str, replacement: Callable[..., Any]) -> None:
    _originals[owner, name] = getattr(owner, name)
    setattr(owner, name, replacement)
