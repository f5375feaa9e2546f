"""Event logger: one method a node, each passing only its own fields to the template."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, TypedDict

from opentelemetry import trace

from inquest import context as ctx
from inquest import otlp, runtime
from inquest.nodes import NO_INPUT_HASH, NODES, Common, RawInput, build, hash_input, raw_text
from inquest.system import Sampler

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Shared(TypedDict, total=False):
    """What every node's method takes beside its own fields; all may be left out.

    input and output are what went in and came out (text, array, tensor, list):
    their statistics are recorded, not they themselves. raw_input is the
    request's input where no ingress event of this process told its hash. extra
    holds members of your own, kept as they are.
    """

    level: str
    message: str
    op_name: str
    input: object
    output: object
    raw_input: RawInput
    biz_type: str
    user_id: str
    extra: Mapping[str, Any]


# Stands for the request where an event belongs to none, such as the loading of a model.
_PROCESS = secrets.token_hex(4)


class EventLogger:
    """Writes AI events. May be used by any thread; cheap to make.

    Every method returns the event's id once the event is durable, if init() was
    given a spool, and raises SpoolError if it is not. It waits for the disk
    (about a millisecond): in a coroutine, use ``await asyncio.to_thread(log.…)``.
    Raises RuntimeError before init(), ValueError for a value that is none of
    those allowed.
    """

    def __init__(
        self,
        *,
        biz_type: str = "",
        model_version: Optional[str] = None,
        device: Optional[str] = None,
        gpu_index: int = 0,
        capture_input: Optional[bool] = None,
    ) -> None:
        """Set defaults for the events of this logger; capture_input is init()'s where not given."""
        self._biz_type = biz_type
        self._model_version = model_version
        self._device = device
        self._capture = capture_input
        self._sampler = Sampler(gpu_index)

    def ingress(self, raw: RawInput, /, **shared: Unpack[Shared]) -> str:
        """Log that a request came in. Its hash is on all later events of the request."""
        request = ctx.current()
        if request is not None:
            request.input_hash = hash_input(raw)
            request.user_id = shared.get("user_id") or request.user_id
            request.biz_type = shared.get("biz_type") or request.biz_type
        shared.setdefault("input", raw)
        shared["raw_input"] = raw
        return self._write("ingress", {}, shared, keep_input=True)

    def preprocess(
        self,
        *,
        length: Optional[int] = None,
        truncated: Optional[bool] = None,
        truncation_side: Optional[str] = None,
        max_length: Optional[int] = None,
        **shared: Unpack[Shared],
    ) -> str:
        """Log tokenization: tokens kept, and whether and on which side ("left", "right", "none") cut."""
        own = {
            "length": length,
            "truncated": truncated,
            "truncation_side": truncation_side,
            "max_length": max_length,
        }
        return self._write("preprocess", own, shared)

    def feature(
        self,
        *,
        deviations: Optional[Mapping[str, float]] = None,
        unseen: Optional[Sequence[str]] = None,
        out_of_range: Optional[Sequence[str]] = None,
        **shared: Unpack[Shared],
    ) -> str:
        """Log features: deviation from training in standard deviations, unseen categories, out of range."""
        own = {"deviations": deviations, "unseen": unseen, "out_of_range": out_of_range}
        return self._write("feature", own, shared)

    def model_load(
        self,
        *,
        configured_version: Optional[str] = None,
        configured_path: Optional[str] = None,
        real_path: Optional[str] = None,
        file_sha256: Optional[str] = None,
        device: Optional[str] = None,
        fallback: Optional[bool] = None,
        stages: Optional[Mapping[str, float]] = None,
        **shared: Unpack[Shared],
    ) -> str:
        """Log that a model was loaded (stages in seconds). Later events of the process name its version."""
        own = {
            "configured_version": configured_version,
            "configured_path": configured_path,
            "real_path": real_path,
            "file_sha256": file_sha256,
            "device": device,
            "fallback": fallback,
            "stages": stages,
        }
        return self._load(own, shared)

    def loaded(self, event: Mapping[str, Any]) -> str:
        """Log what instrumented_init recorded: give this method as its on_event."""
        failed = event.get("error")
        if not failed:
            return self._load(event, {})
        message = f"cannot load {event.get('model_name')}: {failed}"
        return self._load(event, {"level": "ERROR", "message": message})

    def _load(self, own: Mapping[str, Any], shared: Shared) -> str:
        process = runtime.current()
        process.model_version = own.get("configured_version") or process.model_version
        process.device = own.get("device") or process.device
        return self._write("model_load", own, shared)

    def inference(self, *, stages: Optional[Mapping[str, float]] = None, **shared: Unpack[Shared]) -> str:
        """Log a run of the model: stages in seconds; give input and output for their statistics."""
        return self._write("inference", {"stages": stages}, shared)

    def postprocess(self, **shared: Unpack[Shared]) -> str:
        """Log what was done to the model's output."""
        return self._write("postprocess", {}, shared)

    def egress(self, **shared: Unpack[Shared]) -> str:
        """Log that the answer went out; give it as output."""
        return self._write("egress", {}, shared)

    def decision(
        self,
        type: str,
        reason: str,
        *,
        from_: Optional[str] = None,
        to: Optional[str] = None,
        **shared: Unpack[Shared],
    ) -> str:
        """Log a decision ("cache", "fallback", "retry", "degrade", "switch") with its reason."""
        if not reason:
            raise ValueError("cannot log decision: reason is empty; say why it was taken")
        own = {"type": type, "reason": reason, "from": from_, "to": to}
        return self._write("decision", own, shared)

    def _write(self, name: str, own: Mapping[str, Any], shared: Shared, *, keep_input: bool = False) -> str:
        process = runtime.current()
        request = ctx.current()
        span = process.span_for(f"ai.{name}")
        common = self._common(process, request, shared, span, keep_input)
        event = build(
            NODES[name],
            common,
            own,
            level=shared.get("level", "INFO"),
            message=shared.get("message"),
            op_name=shared.get("op_name"),
            input=shared.get("input"),
            output=shared.get("output"),
            extra=shared.get("extra"),
        )
        return process.emit(
            otlp.dumps(event),
            level=event["level"],
            attributes=_attributes(name, own, common),
            time_ns=common.time_ns,
            span=span,
            event_name=f"ai.{name}",
        )

    def _common(
        self,
        process: runtime.Runtime,
        request: Optional[ctx.Request],
        shared: Shared,
        span: trace.SpanContext,
        keep_input: bool,
    ) -> Common:
        sample = self._sampler.sample()
        input_hash = (request.input_hash if request else None) or NO_INPUT_HASH
        text = None
        raw = shared.get("raw_input")
        if raw is not None:
            input_hash = hash_input(raw)
            capture = process.config.capture_input if self._capture is None else self._capture
            text = raw_text(raw)[1] if capture and keep_input else None
        return Common(
            time_ns=time.time_ns(),
            service=process.config.service,
            req_id=request.id if request else f"process-{os.getpid()}-{_PROCESS}",
            trace_id=span.trace_id,
            span_id=span.span_id,
            biz_type=shared.get("biz_type") or (request.biz_type if request else None) or self._biz_type,
            user_id=shared.get("user_id") or (request.user_id if request else None) or "",
            input_hash=input_hash,
            raw_input=text,
            gpu_memory_used_mb=sample.gpu_memory_used_mb,
            gpu_util_percent=sample.gpu_util_percent,
            model_version=self._model_version or process.model_version,
            device=self._device or process.device or sample.device,
        )


def _attributes(name: str, own: Mapping[str, Any], common: Common) -> dict[str, object]:
    """Return what the record itself carries, so that it can be found without reading the event."""
    values: dict[str, object] = {ctx.REQUEST_ID: common.req_id}
    if common.user_id:
        values[ctx.USER_ID] = common.user_id
    if common.biz_type:
        values[ctx.BIZ_TYPE] = common.biz_type
    if name == "decision":
        values.update({f"decision.{key}": value for key, value in own.items() if value is not None})
    return values
