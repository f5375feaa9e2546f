"""Span attributes of a generation: what was asked, what was used, how far they differ.

Three measures, each absent when it cannot be known:

``llm.temperature_drift``
    The larger of |effective − requested| and |effective − configured|, over
    those that are known; unit: temperature. *Effective* is what the server
    sampled with, *requested* what the caller named, *configured* the service's
    baseline. ``llm.temperature_drift.against`` names the one that differs
    (``request`` or ``baseline``). Above 0.3 it is a finding. Configure a
    baseline only where callers are not free to choose.

``llm.top_p_skew``
    Effective − expected top-p, signed, −1 … 1: negative means that less of the
    distribution was sampled than expected. Expected is the request's value or
    the baseline's, whichever is farther away.

``llm.prompt_token_density``
    Input tokens per character (Unicode code point) of the prompt's text.
    English prose has about 0.25; a blob in base64 or hex 0.5 and more; scripts
    that a tokenizer does not know above 1. Input tokens are the server's count,
    cached ones included. Chat templates add some tokens a message, so short
    prompts read high. Absent when the prompt has parts that are not text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Optional, Union

from opentelemetry.trace import Span

__all__ = [
    "TEMPERATURE_DRIFT_LIMIT",
    "Generation",
    "Sampling",
    "prompt_token_density",
    "record_generation",
    "temperature_drift",
    "top_p_skew",
]

TEMPERATURE_DRIFT_LIMIT = 0.3
"""A drift above this is a finding."""

_DIGITS = 6  # 1.0 - 0.7 is not 0.30000000000000004 here

AttributeValue = Union[str, bool, int, float, Sequence[str], Sequence[float]]


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters; None is "not named", which is not the same as a default."""

    temperature: Optional[float] = None
    top_p: Optional[float] = None
    top_k: Optional[int] = None
    max_tokens: Optional[int] = None
    frequency_penalty: Optional[float] = None
    presence_penalty: Optional[float] = None
    seed: Optional[int] = None
    choice_count: Optional[int] = None
    stop_sequences: Optional[Sequence[str]] = None


# Names under which APIs and libraries have these parameters.
_ALIASES = {
    "n": "choice_count",
    "stop": "stop_sequences",
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "max_new_tokens": "max_tokens",
    "num_predict": "max_tokens",
}

_SEMCONV = {"choice_count": "choice.count"}

# Floats must be finite and in this range; what is not is told, not recorded.
_RANGES = {
    "temperature": (0.0, 100.0),
    "top_p": (0.0, 1.0),
    "frequency_penalty": (-1e6, 1e6),
    "presence_penalty": (-1e6, 1e6),
}


@dataclass
class Generation:
    """What ``record_generation`` computed; None where it cannot be known."""

    temperature_drift: Optional[float] = None
    temperature_drift_against: Optional[str] = None
    top_p_skew: Optional[float] = None
    prompt_token_density: Optional[float] = None
    findings: list[str] = field(default_factory=list)
    """Names of the measures that are findings."""
    invalid: list[str] = field(default_factory=list)
    """Names of values that were left out because they are impossible."""


def temperature_drift(
    effective: Optional[float], requested: Optional[float] = None, baseline: Optional[float] = None
) -> Optional[tuple[float, str]]:
    """Return the drift and what it is against, ``request`` or ``baseline``; None if unknown."""
    found = _farthest(effective, requested, baseline)
    return None if found is None else (abs(found[0]), found[1])


def top_p_skew(
    effective: Optional[float], requested: Optional[float] = None, baseline: Optional[float] = None
) -> Optional[float]:
    """Return effective − expected top-p, −1 … 1; None if unknown."""
    found = _farthest(effective, requested, baseline)
    return None if found is None else found[0]


def _farthest(
    effective: Optional[float], requested: Optional[float], baseline: Optional[float]
) -> Optional[tuple[float, str]]:
    if effective is None:
        return None
    differences = [
        (round(effective - expected, _DIGITS), name)
        for expected, name in ((requested, "request"), (baseline, "baseline"))
        if expected is not None
    ]
    # max keeps the first of equals: a broken request tells more than a broken baseline.
    return max(differences, key=lambda d: abs(d[0]), default=None)


def prompt_token_density(prompt: Any, input_tokens: Optional[int]) -> Optional[float]:
    """Return input tokens per character of ``prompt``: a text, or chat messages; None if unknown."""
    characters, other = _measure_prompt(prompt)
    if input_tokens is None or input_tokens < 0 or characters == 0 or other:
        return None
    return round(input_tokens / characters, _DIGITS)


def record_generation(
    span: Span,
    *,
    requested: Union[Sampling, Mapping[str, Any], None] = None,
    effective: Union[Sampling, Mapping[str, Any], None] = None,
    baseline: Union[Sampling, Mapping[str, Any], None] = None,
    prompt: Any = None,
    prompt_characters: Optional[int] = None,
    input_tokens: Optional[int] = None,
    output_tokens: Optional[int] = None,
    cached_tokens: Optional[int] = None,
    reasoning_tokens: Optional[int] = None,
    operation: str = "chat",
    provider: Optional[str] = None,
    request_model: Optional[str] = None,
    response_model: Optional[str] = None,
    response_id: Optional[str] = None,
    finish_reasons: Optional[Sequence[str]] = None,
    stream: Optional[bool] = None,
    temperature_drift_limit: float = TEMPERATURE_DRIFT_LIMIT,
) -> Generation:
    """Set the attributes of a generation on ``span`` and return what was computed.

    ``requested``, ``effective`` and ``baseline`` may be mappings with the names
    that APIs use (``n``, ``stop``, ``max_new_tokens`` …). The requested values go to
    ``gen_ai.request.*``, the effective ones to ``llm.effective.*``, the baseline's
    to ``llm.baseline.*``. The prompt is only measured, never recorded. Impossible
    values (not a number, out of range) are left out and named in
    ``llm.invalid``; nothing is raised because of a value.
    """
    result = Generation()
    asked = _sampling(requested, "requested", result.invalid)
    used = _sampling(effective, "effective", result.invalid)
    base = _sampling(baseline, "baseline", result.invalid)
    attributes: dict[str, AttributeValue] = {"gen_ai.operation.name": operation}
    for prefix, sampling in (("gen_ai.request", asked), ("llm.effective", used), ("llm.baseline", base)):
        for member in fields(sampling):
            value = getattr(sampling, member.name)
            if value is not None:
                attributes[f"{prefix}.{_SEMCONV.get(member.name, member.name)}"] = value
    counts: dict[str, Optional[int]] = {}
    for name, count in (
        ("input_tokens", input_tokens),
        ("output_tokens", output_tokens),
        ("cache_read.input_tokens", cached_tokens),
        ("reasoning.output_tokens", reasoning_tokens),
    ):
        counts[name] = _token_count(count, name, result.invalid)
    for name, value in (
        ("gen_ai.provider.name", provider),
        ("gen_ai.request.model", request_model),
        ("gen_ai.request.stream", stream),
        ("gen_ai.response.model", response_model),
        ("gen_ai.response.id", response_id),
        ("gen_ai.response.finish_reasons", list(finish_reasons) if finish_reasons else None),
        *((f"gen_ai.usage.{name}", count) for name, count in counts.items()),
    ):
        if value is not None:
            attributes[name] = value
    _measure(result, attributes, asked, used, base, temperature_drift_limit)
    _density(result, attributes, prompt, prompt_characters, counts["input_tokens"])
    if result.invalid:
        attributes["llm.invalid"] = list(result.invalid)
    if result.findings:
        attributes["llm.findings"] = list(result.findings)
    span.set_attributes(attributes)
    return result


def _measure(
    result: Generation,
    attributes: dict[str, AttributeValue],
    asked: Sampling,
    used: Sampling,
    base: Sampling,
    limit: float,
) -> None:
    drift = temperature_drift(used.temperature, asked.temperature, base.temperature)
    if drift is not None:
        result.temperature_drift, result.temperature_drift_against = drift
        attributes["llm.temperature_drift"], attributes["llm.temperature_drift.against"] = drift
        if drift[0] > limit:
            result.findings.append("llm.temperature_drift")
    result.top_p_skew = top_p_skew(used.top_p, asked.top_p, base.top_p)
    if result.top_p_skew is not None:
        attributes["llm.top_p_skew"] = result.top_p_skew


def _density(
    result: Generation,
    attributes: dict[str, AttributeValue],
    prompt: Any,
    characters: Optional[int],
    input_tokens: Optional[int],
) -> None:
    other = 0
    if prompt is not None:
        characters, other = _measure_prompt(prompt)
    if characters is not None and characters >= 0:
        attributes["llm.prompt.characters"] = characters
    if other:
        attributes["llm.prompt.parts_not_text"] = other
    if characters and not other and input_tokens is not None:
        result.prompt_token_density = round(input_tokens / characters, _DIGITS)
        attributes["llm.prompt_token_density"] = result.prompt_token_density


def _sampling(source: Union[Sampling, Mapping[str, Any], None], whose: str, invalid: list[str]) -> Sampling:
    """Read parameters from either form; what is impossible is named in ``invalid``."""
    if source is None:
        return Sampling()
    if isinstance(source, Sampling):
        values: dict[str, Any] = {f.name: getattr(source, f.name) for f in fields(source)}
    else:
        known = {f.name for f in fields(Sampling)}
        # A canonical name wins over an alias, whatever their order.
        values = {_ALIASES[k]: v for k, v in source.items() if k in _ALIASES and v is not None}
        values.update({k: v for k, v in source.items() if k in known and v is not None})
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if value is None:
            continue
        clean = _clean(name, value)
        if clean is None:
            invalid.append(f"{whose}.{name}")
        else:
            kept[name] = clean
    return Sampling(**kept)


def _clean(name: str, value: Any) -> Any:
    if name == "stop_sequences":
        if isinstance(value, str):
            return [value]
        if isinstance(value, (list, tuple)) and all(isinstance(s, str) for s in value):
            return list(value)
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if name in _RANGES:
        low, high = _RANGES[name]
        return float(value) if math.isfinite(value) and low <= value <= high else None
    if isinstance(value, float) and not value.is_integer():
        return None
    return int(value)


def _token_count(value: Any, name: str, invalid: list[str]) -> Optional[int]:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    invalid.append(name)
    return None


def _measure_prompt(prompt: Any) -> tuple[int, int]:
    """Characters of a prompt's text, and the number of its parts that are not text.

    Read are a text, and lists of texts and of messages (dicts or objects with
    ``content``: a text, or parts with ``text``).
    """
    if prompt is None:
        return 0, 0
    if isinstance(prompt, str):
        return len(prompt), 0
    if isinstance(prompt, (list, tuple)):
        measured = [_measure_prompt(part) for part in prompt]
        return sum(m[0] for m in measured), sum(m[1] for m in measured)
    for name in ("content", "text"):
        inner = prompt.get(name) if isinstance(prompt, Mapping) else getattr(prompt, name, None)
        if isinstance(inner, (str, list, tuple)):
            return _measure_prompt(inner)
    if isinstance(prompt, Mapping) and "role" in prompt and prompt.get("content") is None:
        return 0, 0  # an assistant's tool call has no text
    return 0, 1
