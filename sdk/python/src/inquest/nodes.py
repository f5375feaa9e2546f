"""The one template behind all nodes of a request's way.

A node names its section of the event and what may stand there. The template
fills all the rest: time, service, ids and the three contexts. So a caller
passes only its own fields, and a new node is one more line in NODES.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from inquest.otlp import SEVERITY, to_bytes
from inquest.tensors import tensor_stats

SCHEMA_VERSION = "1.0"
NO_INPUT_HASH = hashlib.sha256(b"").hexdigest()

RawInput = Union[str, bytes, Mapping[str, Any], list[Any]]


@dataclass(frozen=True)
class Node:
    """A node: its name, its section of the event, its default operation, and closed lists of values."""

    name: str
    section: Optional[str]
    op_name: str
    choices: Mapping[str, frozenset[str]] = field(default_factory=dict)


_SIDES = frozenset({"left", "right", "none"})
DECISIONS = frozenset({"cache", "fallback", "retry", "degrade", "switch"})

NODES: dict[str, Node] = {
    node.name: node
    for node in (
        Node("ingress", None, "receive"),
        Node("preprocess", "tokenization", "tokenize", {"truncation_side": _SIDES}),
        Node("feature", "features", "features"),
        Node("model_load", "model_load", "load"),
        Node("inference", "inference", "generate"),
        Node("postprocess", None, "postprocess"),
        Node("egress", None, "respond"),
        Node("decision", "decision", "decide", {"type": DECISIONS}),
    )
}


@dataclass(frozen=True)
class Common:
    """What every event has and no caller passes. time_ns is nanoseconds since 1970."""

    time_ns: int
    service: str
    req_id: str
    trace_id: int
    span_id: int
    biz_type: str
    user_id: str
    input_hash: str
    raw_input: Optional[str]
    gpu_memory_used_mb: float
    gpu_util_percent: float
    model_version: str
    device: str


def build(
    node: Node,
    common: Common,
    own: Mapping[str, Any],
    *,
    level: str = "INFO",
    message: Optional[str] = None,
    op_name: Optional[str] = None,
    input: object = None,
    output: object = None,
    extra: Optional[Mapping[str, Any]] = None,
) -> dict[str, Any]:
    """Return the event of a node in the canonical form of the schema.

    own are the node's fields, None left out; input and output are described by
    their statistics; extra members are kept where the form has no member of
    that name. Raises ValueError for a value that the schema would refuse.
    """
    if level not in SEVERITY:
        raise ValueError(f"cannot log {node.name}: level {level!r} is none of {', '.join(SEVERITY)}")
    section = {name: value for name, value in own.items() if value is not None}
    for name, allowed in node.choices.items():
        if section.get(name, next(iter(allowed))) not in allowed:
            raise ValueError(
                f"cannot log {node.name}: {name} {section[name]!r} is none of {', '.join(sorted(allowed))}"
            )
    event: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "timestamp": timestamp(common.time_ns),
        "level": level,
        "service": common.service,
        "req_id": common.req_id,
        "trace_id": f"{common.trace_id:032x}",
        "span_id": f"{common.span_id:016x}",
        "event": node.name,
        "business": {"biz_type": common.biz_type, "user_id": common.user_id, "input_hash": common.input_hash},
        "system": {
            "gpu_memory_used_mb": common.gpu_memory_used_mb,
            "gpu_util_percent": common.gpu_util_percent,
            "model_version": common.model_version,
            "device": common.device,
        },
        "computation": {
            "op_name": op_name or node.op_name,
            "input_stats": stats_of(input),
            "output_stats": stats_of(output),
        },
    }
    if message is not None:
        event["message"] = message
    if common.raw_input is not None:
        event["business"]["input"] = common.raw_input
    if node.section and section:
        event[node.section] = section
    return {**(extra or {}), **event}


def timestamp(time_ns: int) -> str:
    """Return RFC 3339 in UTC with nanoseconds."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def raw_text(value: RawInput) -> tuple[bytes, Optional[str]]:
    """Return the bytes of a raw input, which are hashed, and its text, None when it is not text.

    A mapping or list becomes compact JSON with its members in their order.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        try:
            return data, data.decode("utf-8")
        except UnicodeDecodeError:
            return data, None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    data = to_bytes(text)
    return data, data.decode("utf-8")


def hash_input(value: RawInput) -> str:
    """Return the SHA-256 of a raw input's bytes as 64 hex digits."""
    return hashlib.sha256(raw_text(value)[0]).hexdigest()


def stats_of(value: object) -> dict[str, Any]:
    """Return shape, dtype, has_nan, min_val and max_val of a value.

    Text and bytes have their length as shape; None has the shape [0]; ready
    statistics (a mapping with a shape) are taken as they are; arrays, tensors
    and lists of numbers are measured.
    """
    if value is None:
        return _unmeasured([0], "none")
    if isinstance(value, str):
        return _unmeasured([len(value)], "str")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _unmeasured([len(value)], "bytes")
    if isinstance(value, Mapping):
        if "shape" in value:
            return {**_unmeasured([], "unknown"), **value}
        return _unmeasured([len(value)], "map")
    return dict(tensor_stats(value))


def _unmeasured(shape: list[int], dtype: str) -> dict[str, Any]:
    return {"shape": shape, "dtype": dtype, "has_nan": False, "min_val": None, "max_val": None}
