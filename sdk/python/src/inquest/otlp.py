"""OTLP/JSON: the form in which records lie in the spool and go to the receiver."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Optional

# Name in events and logs → OTLP severity number.
SEVERITY: dict[str, int] = {"TRACE": 1, "DEBUG": 5, "INFO": 9, "WARN": 13, "ERROR": 17, "FATAL": 21}

_MAX_INT = 1 << 63
_MAX_FLOAT = 1.7976931348623157e308


def any_value(value: object) -> dict[str, Any]:
    """Return a Python value as OTLP AnyValue. What OTLP has no type for becomes text."""
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and -_MAX_INT <= value < _MAX_INT:
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": _double(value)}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": attributes({str(key): item for key, item in value.items()})}}
    if isinstance(value, Sequence):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    return {} if value is None else {"stringValue": str(value)}


def _double(value: float) -> object:
    if math.isfinite(value):
        return value
    # As protobuf's JSON mapping writes them.
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def attributes(values: Mapping[str, object]) -> list[dict[str, Any]]:
    """Return a mapping as OTLP attributes; None values are left out."""
    return [{"key": key, "value": any_value(value)} for key, value in values.items() if value is not None]


def log_record(
    *,
    time_ns: int,
    severity: int,
    severity_text: str,
    body: str,
    values: Mapping[str, object],
    trace_id: int = 0,
    span_id: int = 0,
    flags: int = 0,
    event_name: Optional[str] = None,
) -> dict[str, Any]:
    """Return one OTLP log record. time_ns is nanoseconds since 1970; ids of 0 are left out."""
    record: dict[str, Any] = {
        "timeUnixNano": str(time_ns),
        "observedTimeUnixNano": str(time_ns),
        "severityNumber": severity,
        "severityText": severity_text,
        "body": {"stringValue": body},
        "attributes": attributes(values),
    }
    if event_name:
        record["eventName"] = event_name
    if trace_id:
        record["traceId"] = f"{trace_id:032x}"
    if span_id:
        record["spanId"] = f"{span_id:016x}"
    if flags:
        record["flags"] = flags
    return record


def dumps(value: object) -> str:
    """Return JSON on one line. Numbers that JSON lacks: NaN becomes null, infinity the largest double."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    except ValueError:
        finite = _finite(json.loads(json.dumps(value, default=_plain)))
        return json.dumps(finite, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def to_bytes(text: str) -> bytes:
    """Return UTF-8; what UTF-8 cannot write (a lone surrogate) becomes a question mark."""
    return text.encode("utf-8", "replace")


def _plain(value: object) -> object:
    """Turn what json does not know into what it does: NumPy numbers and arrays, sets, paths."""
    for method in ("tolist", "item"):
        convert = getattr(value, method, None)
        if callable(convert):
            plain: object = convert()
            return plain
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else math.copysign(_MAX_FLOAT, value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value
