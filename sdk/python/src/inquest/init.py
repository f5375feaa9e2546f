"""Loading of a model, recorded: stages, the real path, the file's hash, the device.

As a context manager::

    with instrumented_init("ranker", configured_version="v7", path="/models/ranker",
                           device="cuda:0", on_event=log) as load:
        with load.stage("read weights"):
            ...
        with load.stage("to device"):
            model.to(device)
        load.observe(model)

or as a decorator of a function or coroutine, with ``stage("…")`` inside it. Each
stage is a child span of ``model_load <name>``. At the end ``load.event`` is the
``model_load`` member of an AI event: configured_version, configured_path,
real_path, file_sha256, device, fallback, stages (seconds), and more:

* ``model_name``, ``seconds``, ``unstaged_seconds`` (time that no stage explains);
* ``hash_kind`` (``file`` or ``tree``), ``file_bytes``, ``hash_seconds``;
* ``requested_device``, and ``fallback_reason`` where ``fallback`` is true;
* ``path_changed``: the configured path led elsewhere, or to a changed file, when
  loading was over;
* ``hash_error``, ``error``: what went wrong.

What is not known is absent. The path is resolved before loading begins, and
``fallback`` says that the model went to another kind of device than requested.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import functools
import inspect
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Optional, TypeVar, Union

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Status, StatusCode, Tracer

from ._file_hash import HashInterrupted, digest_path

__all__ = ["ModelLoad", "current_load", "instrumented_init", "stage"]

F = TypeVar("F", bound=Callable[..., Any])

_SCOPE = "inquest.init"
_EXIT_WAIT_SECONDS = 5.0
_log = logging.getLogger(__name__)

_current: contextvars.ContextVar[Optional[ModelLoad]] = contextvars.ContextVar(
    "inquest_model_load", default=None
)


class ModelLoad:
    """One loading of a model. Stages may run in several threads at once."""

    def __init__(
        self,
        model_name: str,
        *,
        configured_version: Optional[str] = None,
        path: Union[str, os.PathLike[str], None] = None,
        device: Optional[str] = None,
        hash_files: str = "now",
        hash_bytes_per_second: Optional[float] = None,
        on_event: Optional[Callable[[dict[str, Any]], Any]] = None,
        tracer: Optional[Tracer] = None,
    ) -> None:
        """Prepare a record; ``instrumented_init`` is the way to make one.

        Args:
            model_name: name for people, also in the span's name.
            configured_version: the version that the configuration names.
            path: file or directory of the model, as configured.
            device: the device asked for, such as ``cuda:0``.
            hash_files: ``now`` (at the end, in the caller's time), ``background`` (in a
                thread; the event follows when it is done) or ``off``.
            hash_bytes_per_second: limit of the reading; default none.
            on_event: gets the event once, when it is complete.
            tracer: default is the global provider's.

        Raises:
            ValueError: ``hash_files`` is none of the three.
        """
        if hash_files not in ("now", "background", "off"):
            raise ValueError(f"cannot use hash_files={hash_files!r}: use 'now', 'background' or 'off'")
        self.model_name = model_name
        self.event: dict[str, Any] = {"model_name": model_name, "fallback": False, "stages": {}}
        self._path = None if path is None else Path(path)
        self._hash = hash_files if path is not None else "off"
        self._rate = hash_bytes_per_second
        self._requested = device
        self._on_event = on_event
        self._tracer = tracer or trace.get_tracer(_SCOPE)
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._stop = threading.Event()
        self._identity: Optional[tuple[int, ...]] = None
        if configured_version is not None:
            self.event["configured_version"] = configured_version
        if device is not None:
            self.event["requested_device"] = device

    def begin(self) -> None:
        """Start the span and resolve the path."""
        self._started = time.perf_counter()
        self.span = self._tracer.start_span(f"model_load {self.model_name}")
        self.context = trace.set_span_in_context(self.span)
        self._context_token = otel_context.attach(self.context)
        self._current_token = _current.set(self)
        if self._path is not None:
            self.event["configured_path"] = os.path.abspath(self._path)
            self.event["real_path"] = os.path.realpath(self._path)
            self._identity = _identity(self._path)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Record a stage; stages of the same name add up.

        Raises:
            Exception: what the stage itself raises, recorded first.
        """
        started = time.perf_counter()
        span = self._tracer.start_span(
            name, context=self.context, attributes={"model.load.stage": name, "model.name": self.model_name}
        )
        token = otel_context.attach(trace.set_span_in_context(span, otel_context.get_current()))
        try:
            yield
        except BaseException as err:
            self.event.setdefault("failed_stage", name)
            span.record_exception(err)
            span.set_status(Status(StatusCode.ERROR, str(err)[:500]))
            raise
        finally:
            otel_context.detach(token)
            span.end()
            with self._lock:
                stages = self.event["stages"]
                stages[name] = round(stages.get(name, 0.0) + time.perf_counter() - started, 6)

    def device(self, actual: Any) -> None:
        """Tell the device that the model is on (a name or a ``torch.device``)."""
        name = str(actual)
        self.event["device"] = name
        wanted = self._requested
        if wanted is None or wanted == "auto":
            return
        if _kind(wanted) != _kind(name):
            self.event["fallback"] = True
            self.event["fallback_reason"] = f"{wanted} was requested, the model is on {name}; {_why_no_gpu()}"
        else:
            self.event["fallback"] = False
            self.event.pop("fallback_reason", None)

    def observe(self, model: Any) -> None:
        """Read the device from a model: PyTorch, Transformers, or a session of ONNX Runtime.

        A model spread over several kinds of device counts as on the slowest: the
        processor.
        """
        found = _devices_of(model)
        if not found:
            return
        if len(found) > 1:
            self.event["devices"] = found
        slow = [d for d in found if _kind(d) == "cpu"]
        self.device(slow[0] if slow else found[0])

    def end(self, error: Optional[BaseException] = None) -> None:
        """End the record; hash the files and hand the event over, or leave that to a thread."""
        seconds = time.perf_counter() - self._started
        _current.reset(self._current_token)
        otel_context.detach(self._context_token)
        event = self.event
        event["seconds"] = round(seconds, 6)
        event["unstaged_seconds"] = round(max(0.0, seconds - sum(event["stages"].values())), 6)
        if error is not None:
            event["error"] = f"{type(error).__name__}: {error}"[:500]
            self.span.record_exception(error)
            self.span.set_status(Status(StatusCode.ERROR, str(error)[:500]))
        if self._hash == "now":
            self._digest()
        self._note_change()
        self._set_attributes()
        self.span.end()
        if self._hash != "background":
            self._deliver()
            return
        _pending.add(self)
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(self._finish_later,), name="inquest-hash", daemon=True).start()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Wait, at most ``timeout`` seconds, until the event was handed over; return whether it was."""
        return self._done.wait(timeout)

    def _finish_later(self) -> None:
        self._digest()
        self._note_change()
        self._deliver()
        _pending.discard(self)

    def _digest(self) -> None:
        if self._path is None:
            return
        started = time.perf_counter()
        try:
            # The path that was resolved at the start: what was loaded, should the link move.
            found = digest_path(Path(self.event["real_path"]), bytes_per_second=self._rate, stop=self._stop)
        except HashInterrupted:
            self.event["hash_error"] = "the process ended before the files were read"
        except (OSError, ValueError) as err:
            self.event["hash_error"] = str(err)[:500]
        else:
            self.event["file_sha256"] = found.sha256
            self.event["hash_kind"] = found.kind
            self.event["file_bytes"] = found.size
            if found.changed:
                self.event["path_changed"] = True
        self.event["hash_seconds"] = round(time.perf_counter() - started, 6)

    def _note_change(self) -> None:
        if self._path is None:
            return
        if os.path.realpath(self._path) != self.event["real_path"] or _identity(self._path) != self._identity:
            self.event["path_changed"] = True

    def _set_attributes(self) -> None:
        names = {
            "configured_version": "model.version.configured",
            "configured_path": "model.path.configured",
            "real_path": "model.path.real",
            "file_sha256": "model.file.sha256",
            "device": "model.device",
            "requested_device": "model.device.requested",
            "fallback": "model.device.fallback",
            "fallback_reason": "model.device.fallback_reason",
            "path_changed": "model.path.changed",
            "unstaged_seconds": "model.load.unstaged_seconds",
            "hash_error": "model.file.hash_error",
        }
        self.span.set_attribute("model.name", self.model_name)
        for member, attribute in names.items():
            if member in self.event:
                self.span.set_attribute(attribute, self.event[member])

    def _deliver(self) -> None:
        if self._on_event is None:
            self._done.set()
            return
        token = otel_context.attach(self.context)  # so that the event is bound to this load's span
        try:
            self._on_event(dict(self.event))
        except Exception:  # a logger's failure must not undo a loaded model
            _log.exception("cannot hand over the model_load event of %s", self.model_name)
        finally:
            otel_context.detach(token)
            self._done.set()


class instrumented_init:
    """Record the loading of a model: ``with instrumented_init("ranker", …) as load:``, or as a decorator.

    Inside a ``with`` block: ``load.stage("read weights")`` is a block of its own,
    ``load.observe(model)`` looks where the model is, ``load.device("cuda:0")`` tells
    it. Inside a decorated function use ``stage`` and ``current_load``,
    imported as in ``from inquest.init import stage``.

    Args:
        model_name: name for people, also in the span's name.
        configured_version: the version that the configuration names.
        path: file or directory of the model, as configured; it is resolved and hashed.
        device: the device asked for, such as ``cuda:0``.
        hash_files: ``now`` (default), ``background`` or ``off``.
        hash_bytes_per_second: limit of the reading for the hash; default none.
        on_event: gets the ``model_load`` member of the event; give ``EventLogger.loaded``.
        tracer: default is the global provider's.

    Raises:
        ValueError: ``hash_files`` is none of the three.
    """

    def __init__(self, model_name: str, **options: Any) -> None:
        self._make = functools.partial(ModelLoad, model_name, **options)
        self._make()  # a wrong argument shows here, not when the decorated function is called
        self._loads: list[ModelLoad] = []

    def __enter__(self) -> ModelLoad:
        load = self._make()
        load.begin()
        self._loads.append(load)
        return load

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], tb: Optional[TracebackType]
    ) -> None:
        self._loads.pop().end(error)

    def __call__(self, function: F) -> F:
        """Record each call of ``function``; inside it use ``stage`` and ``current_load``."""
        make = self._make
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                with _recorded(make()) as load:
                    result = await function(*args, **kwargs)
                    load.observe(result)
                    return result

            return call_async  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with _recorded(make()) as load:
                result = function(*args, **kwargs)
                load.observe(result)
                return result

        return call  # type: ignore[return-value]


@contextlib.contextmanager
def _recorded(load: ModelLoad) -> Iterator[ModelLoad]:
    load.begin()
    try:
        yield load
    except BaseException as err:
        load.end(err)
        raise
    load.end()


def current_load() -> Optional[ModelLoad]:
    """Return the loading that this thread or task is in."""
    return _current.get()


@contextlib.contextmanager
def stage(name: str) -> Iterator[None]:
    """Record a stage of the current loading; without one, do nothing."""
    load = _current.get()
    if load is None:
        yield
        return
    with load.stage(name):
        yield


def _identity(path: Path) -> Optional[tuple[int, ...]]:
    try:
        found = path.stat()
    except OSError:
        return None
    # Not ctime: a further hard link, as caches of models make them, changes it.
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _kind(device: str) -> str:
    """The kind of a device: ``cuda:0`` and ``CUDAExecutionProvider`` are both ``cuda``."""
    name = device.lower().partition(":")[0].replace("executionprovider", "")
    return {"gpu": "cuda", "rocm": "cuda", "hip": "cuda", "tensorrt": "cuda", "nvtensorrtrtx": "cuda"}.get(
        name, name
    )


def _devices_of(model: Any) -> list[str]:
    found: dict[str, None] = {}
    with contextlib.suppress(Exception):
        if hasattr(model, "get_providers"):  # ONNX Runtime, the provider in use first
            return [_kind(str(model.get_providers()[0]))]
        if callable(getattr(model, "parameters", None)):
            for tensor in model.parameters():
                found[str(tensor.device)] = None
        elif getattr(model, "device", None) is not None:
            found[str(model.device)] = None
    return list(found)


def _why_no_gpu() -> str:
    """What this process can see of a GPU, for the reason of a fallback."""
    if not os.path.exists("/proc/driver/nvidia/version") and not os.path.exists("/dev/kfd"):
        return "no GPU driver is loaded on this machine"
    torch = sys.modules.get("torch")
    if torch is None:
        return "a GPU driver is loaded"
    try:
        if torch.version.cuda is None and torch.version.hip is None:
            return "a GPU driver is loaded, but this PyTorch was built without GPU support"
        if not torch.cuda.is_available():
            return (
                "a GPU driver is loaded, but PyTorch cannot use a GPU (driver version, CUDA_VISIBLE_DEVICES?)"
            )
        return "PyTorch can use a GPU"
    except Exception as err:
        return f"PyTorch cannot tell: {err}"


_pending: weakref.WeakSet[ModelLoad] = weakref.WeakSet()


@atexit.register
def _deliver_at_exit() -> None:
    """Hand over the events whose hashing is not done, without the hash."""
    pending = list(_pending)
    for load in pending:
        load._stop.set()
    for load in pending:
        load.wait(_EXIT_WAIT_SECONDS)
