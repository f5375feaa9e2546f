"""Attributes of a generation and the three measures."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, Optional

import pytest
from opentelemetry.sdk.trace import TracerProvider

from inquest.llm import (
    Generation,
    Sampling,
    prompt_token_density,
    record_generation,
    temperature_drift,
    top_p_skew,
)


def record(**options: Any) -> tuple[Generation, dict[str, Any]]:
    span = TracerProvider().get_tracer("test").start_span("chat m")
    result = record_generation(span, **options)
    span.end()
    return result, dict(getattr(span, "attributes", {}))


@pytest.mark.parametrize(
    ("effective", "requested", "baseline", "want"),
    [
        (0.7, 0.7, None, (0.0, "request")),
        (1.0, 0.7, None, (0.3, "request")),
        (0.7, 0.2, 0.7, (0.5, "request")),
        (0.2, 0.2, 0.7, (0.5, "baseline")),
        (0.5, 0.2, 0.2, (0.3, "request")),
        (0.0, None, 0.0, (0.0, "baseline")),
        (0.7, None, None, None),
        (None, 0.7, 0.7, None),
    ],
)
def test_temperature_drift(
    effective: Optional[float], requested: Optional[float], baseline: Optional[float], want: Any
) -> None:
    assert temperature_drift(effective, requested, baseline) == want


def test_drift_is_a_finding_only_above_the_limit() -> None:
    def f(effective: float, requested: float, want: list[str]) -> None:
        result, attributes = record(
            requested={"temperature": requested}, effective={"temperature": effective}
        )
        assert result.findings == want
        assert attributes.get("llm.findings", ()) == tuple(want)

    f(1.0, 0.7, [])
    f(0.4, 0.7, [])
    f(1.01, 0.7, ["llm.temperature_drift"])
    f(0.0, 1.0, ["llm.temperature_drift"])


def test_top_p_skew() -> None:
    assert top_p_skew(0.8, 0.95) == -0.15
    assert top_p_skew(1.0, None, 0.9) == 0.1
    assert top_p_skew(0.9, 0.9, 0.5) == 0.4
    assert top_p_skew(None, 0.9) is None
    assert top_p_skew(0.9) is None


@pytest.mark.parametrize(
    ("prompt", "tokens", "want"),
    [
        ("a" * 400, 100, 0.25),
        ("你好", 4, 2.0),
        ("", 3, None),
        (None, 3, None),
        ("abcd", None, None),
        ([{"role": "system", "content": "ab"}, {"role": "user", "content": "cd"}], 2, 0.5),
        ([{"role": "user", "content": [{"type": "text", "text": "abcd"}]}], 1, 0.25),
        (
            [{"role": "assistant", "content": None, "tool_calls": []}, {"role": "user", "content": "ab"}],
            1,
            0.5,
        ),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {}}, {"text": "ab"}]}], 900, None),
        ([SimpleNamespace(content="abcd")], 2, 0.5),
    ],
)
def test_prompt_token_density(prompt: Any, tokens: Optional[int], want: Optional[float]) -> None:
    assert prompt_token_density(prompt, tokens) == want
    result, attributes = record(prompt=prompt, input_tokens=tokens)
    assert result.prompt_token_density == want
    assert attributes.get("llm.prompt_token_density") == want


def test_attributes() -> None:
    result, attributes = record(
        requested=Sampling(temperature=0.2, top_p=0.95, seed=3),
        effective={"temperature": 0.7, "top_p": 1, "max_new_tokens": 64, "n": 2, "stop": "\n\n"},
        baseline={"temperature": 0.7},
        prompt="a" * 40,
        input_tokens=10,
        output_tokens=5,
        cached_tokens=4,
        reasoning_tokens=1,
        provider="openai",
        request_model="m",
        response_model="m-1",
        response_id="x",
        finish_reasons=["stop"],
        stream=True,
    )
    assert result == Generation(0.5, "request", 0.05, 0.25, ["llm.temperature_drift"], [])
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.2,
        "gen_ai.request.top_p": 0.95,
        "gen_ai.request.seed": 3,
        "gen_ai.response.model": "m-1",
        "gen_ai.response.id": "x",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.reasoning.output_tokens": 1,
        "llm.effective.temperature": 0.7,
        "llm.effective.top_p": 1.0,
        "llm.effective.max_tokens": 64,
        "llm.effective.choice.count": 2,
        "llm.effective.stop_sequences": ("\n\n",),
        "llm.baseline.temperature": 0.7,
        "llm.temperature_drift": 0.5,
        "llm.temperature_drift.against": "request",
        "llm.top_p_skew": 0.05,
        "llm.prompt.characters": 40,
        "llm.prompt_token_density": 0.25,
        "llm.findings": ("llm.temperature_drift",),
    }


def test_impossible_values_are_told_and_left_out() -> None:
    result, attributes = record(
        requested={"temperature": math.nan, "top_p": 1.5, "max_tokens": "many", "top_k": 2.5, "stop": [1]},
        effective={"temperature": 0.5, "top_p": True},
        input_tokens=-1,
        prompt="a",
    )
    assert set(result.invalid) == {
        "requested.temperature",
        "requested.top_p",
        "requested.max_tokens",
        "requested.top_k",
        "requested.stop_sequences",
        "effective.top_p",
        "input_tokens",
    }
    assert set(attributes["llm.invalid"]) == set(result.invalid)
    assert (result.temperature_drift, result.top_p_skew, result.prompt_token_density) == (None, None, None)
    assert "gen_ai.usage.input_tokens" not in attributes


def test_zero_is_a_value() -> None:
    _, attributes = record(requested={"temperature": 0}, effective={"temperature": 0.0}, output_tokens=0)
    assert attributes["gen_ai.request.temperature"] == 0.0
    assert attributes["llm.temperature_drift"] == 0.0
    assert attributes["gen_ai.usage.output_tokens"] == 0


def test_characters_may_be_given_instead_of_the_prompt() -> None:
    result, attributes = record(prompt_characters=100, input_tokens=30)
    assert result.prompt_token_density == 0.3
    assert attributes["llm.prompt.characters"] == 100
