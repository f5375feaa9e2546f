from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace

import inquest
from capture import Capture
from inquest import nodes
from inquest.system import Sample, Sampler

Validate = Callable[[dict[str, Any]], None]


def all_nodes(log: inquest.EventLogger) -> list[str]:
    """Write one event of each node, each with its own fields only."""
    return [
        log.ingress("Grüße", biz_type="search_qa", user_id="u-1"),
        log.preprocess(length=512, truncated=True, truncation_side="right", max_length=512),
        log.feature(deviations={"age": 3.2}, unseen=["city"], out_of_range=["age"]),
        log.model_load(configured_version="m@3", configured_path="/m", real_path="/r", file_sha256="a" * 64,
                       device="cpu", fallback=False, stages={"read": 0.5}),
        log.inference(stages={"prefill": 0.01}, input=[1, 2, 3], output=[0.5, float("nan")]),
        log.postprocess(input="raw", output="clean"),
        log.egress(output="answer", message="done", level="WARN", extra={"team": "blue", "service": "not mine"}),
        log.decision("fallback", "primary timed out", from_="big", to="small"),
    ]  # fmt: skip


@pytest.mark.parametrize("durable", [True, False])
def test_every_node_is_valid(
    durable: bool, tmp_path: Path, receiver: Capture, process: None, validate: Validate
) -> None:
    running = inquest.init("chat-api", receiver.endpoint, str(tmp_path) if durable else None, version="1.2")
    with inquest.request("r-1"), running.tracer.start_as_current_span("work") as span:
        ids = all_nodes(inquest.EventLogger())
        context = span.get_span_context()
    assert running.wait_shipped()
    receiver.wait(lambda r: len(r.logs) >= 8)
    events = receiver.events()
    assert [event["event"] for event in events] == list(nodes.NODES)
    for event, log in zip(events, receiver.logs):
        validate(event)
        assert log["eventName"] == "ai." + event["event"]
        assert log["attributes"]["request.id"] == event["req_id"] == "r-1"
        assert log["traceId"] == event["trace_id"] == f"{context.trace_id:032x}"
        assert log["spanId"] == event["span_id"] == f"{context.span_id:016x}"
        assert event["business"] == {
            "biz_type": "search_qa",
            "user_id": "u-1",
            "input_hash": hashlib.sha256("Grüße".encode()).hexdigest(),
        }
        assert log["resource"]["service.name"] == event["service"] == "chat-api"
    assert ids == [log["attributes"]["event.id"] for log in receiver.logs]
    by_node = {event["event"]: event for event in events}
    assert by_node["preprocess"]["tokenization"]["truncation_side"] == "right"
    assert by_node["inference"]["computation"]["input_stats"]["shape"] == [3]
    assert by_node["inference"]["computation"]["output_stats"]["has_nan"] is True
    assert by_node["inference"]["system"]["model_version"] == "m@3"
    assert by_node["egress"]["team"] == "blue" and by_node["egress"]["level"] == "WARN"
    decision = receiver.logs[-1]["attributes"]
    assert (decision["decision.type"], decision["decision.reason"]) == ("fallback", "primary timed out")
    assert by_node["decision"]["decision"]["from"] == "big"


def test_outside_of_a_request_ids_are_there_too(receiver: Capture, process: None, validate: Validate) -> None:
    running = inquest.init("s", receiver.endpoint)
    inquest.EventLogger().model_load(configured_version="v")
    running.flush()
    event = receiver.events()[0]
    validate(event)
    assert event["req_id"].startswith("process-")
    assert event["business"]["input_hash"] == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize("capture", [True, False])
def test_input_is_captured_only_when_asked(capture: bool, receiver: Capture, process: None) -> None:
    running = inquest.init("s", receiver.endpoint, capture_input=capture)
    inquest.EventLogger().ingress({"prompt": "hé"})
    running.flush()
    business = receiver.events()[0]["business"]
    text = '{"prompt":"hé"}'
    assert business["input_hash"] == hashlib.sha256(text.encode()).hexdigest()
    assert business.get("input") == (text if capture else None)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda log: log.decision("guess", "why"), "type 'guess' is none of cache"),
        (lambda log: log.decision("cache", ""), "reason is empty"),
        (lambda log: log.preprocess(truncation_side="up"), "truncation_side 'up' is none of left"),
        (lambda log: log.egress(level="LOUD"), "level 'LOUD' is none of TRACE"),
    ],
)
def test_wrong_values_are_told(
    call: Callable[[inquest.EventLogger], str], words: str, receiver: Capture, process: None
) -> None:
    inquest.init("s", receiver.endpoint)
    with pytest.raises(ValueError, match=words):
        call(inquest.EventLogger())


def test_before_init_and_twice(receiver: Capture, process: None) -> None:
    with pytest.raises(RuntimeError, match="call inquest.init"):
        inquest.EventLogger().egress()
    first = inquest.init("s", receiver.endpoint)
    assert inquest.init("s", receiver.endpoint) is first
    with pytest.raises(RuntimeError, match="is set up for 's' already"):
        inquest.init("other", receiver.endpoint)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"service": ""}, "service is empty"),
        ({"service": "s", "endpoint": "host:1"}, "want http://HOST:PORT"),
    ],
)
def test_bad_settings_are_told(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        inquest.init(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (None, ([0], "none")),
        ("añb", ([3], "str")),
        (b"ab", ([2], "bytes")),
        ({"a": 1}, ([1], "map")),
        ({"shape": [2, 3], "dtype": "bf16", "min_val": 1.0}, ([2, 3], "bf16")),
        ([1, 2], ([2], "int")),
    ],
)
def test_stats_of(value: object, want: tuple[list[int], str]) -> None:
    stats = nodes.stats_of(value)
    assert (stats["shape"], stats["dtype"]) == want
    assert {"has_nan", "min_val", "max_val"} <= stats.keys()


@pytest.mark.parametrize(
    ("time_ns", "want"),
    [
        (0, "1970-01-01T00:00:00.000000000Z"),
        (1_000_000_001, "1970-01-01T00:00:01.000000001Z"),
        (1_796_040_000_123_456_789, "2026-11-30T12:00:00.123456789Z"),
    ],
)
def test_timestamp(time_ns: int, want: str) -> None:
    assert nodes.timestamp(time_ns) == want


def test_loading_is_logged(tmp_path: Path, receiver: Capture, process: None, validate: Validate) -> None:
    running = inquest.init("s", receiver.endpoint)
    log = inquest.EventLogger()
    (tmp_path / "model").write_bytes(b"weights")
    with (
        inquest.instrumented_init(
            "ranker", configured_version="v7", path=tmp_path / "model", device="cpu", on_event=log.loaded
        ) as load,
        load.stage("read"),
    ):
        pass
    log.inference()
    running.flush()
    loaded, inference = receiver.events()
    validate(loaded)
    assert loaded["model_load"]["file_sha256"] == hashlib.sha256(b"weights").hexdigest()
    assert list(loaded["model_load"]["stages"]) == ["read"]
    assert inference["system"]["model_version"] == "v7"


def test_function_init_is_not_hidden_by_its_module() -> None:
    import subprocess
    import sys

    for first, second in (("inquest.init", "inquest"), ("inquest", "inquest.init")):
        script = f"import {first}, {second}; assert inquest.init.__module__ == 'inquest.runtime'"
        subprocess.run([sys.executable, "-c", script], check=True, timeout=30)


def test_numbers_that_json_lacks(tmp_path: Path, receiver: Capture, process: None) -> None:
    running = inquest.init("s", receiver.endpoint, str(tmp_path))
    extra = {"nan": float("nan"), "inf": float("inf"), "odd": {1, 2}, "lone": "\ud800", "line": "a\nb"}
    inquest.EventLogger().feature(deviations={"a": float("inf")}, extra=extra)
    assert running.wait_shipped()
    receiver.wait(lambda r: len(r.logs) >= 1)
    event = receiver.events()[0]
    assert event["features"]["deviations"]["a"] == 1.7976931348623157e308
    assert (event["nan"], event["odd"], event["lone"], event["line"]) == (None, [1, 2], "?", "a\nb")


def test_gpu_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Sampler().sample() == Sample(0.0, 0.0, "cpu")

    class Nvml:
        """A driver with two devices; the process sees the second one as its first."""

        nvmlInit = staticmethod(lambda: None)
        nvmlDeviceGetHandleByIndex = staticmethod(lambda index: index)
        nvmlDeviceGetMemoryInfo = staticmethod(lambda handle: type("M", (), {"used": (handle + 1) << 30}))
        nvmlDeviceGetUtilizationRates = staticmethod(lambda handle: type("U", (), {"gpu": 40 + handle}))

    import sys

    monkeypatch.setitem(sys.modules, "pynvml", Nvml)
    assert Sampler().sample() == Sample(1024.0, 40.0, "cuda:0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert Sampler().sample() == Sample(2048.0, 41.0, "cuda:0")


def test_application_with_its_own_tracer_provider(receiver: Capture) -> None:
    import subprocess
    import sys

    script = f"""
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
mine, kept = TracerProvider(), InMemorySpanExporter()
mine.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(mine)
import inquest
inquest.init("s", {receiver.endpoint!r})
with inquest.request("r-9"), trace.get_tracer("t").start_as_current_span("x"):
    inquest.EventLogger().egress()
inquest.shutdown()
assert [(s.name, s.attributes["request.id"]) for s in kept.get_finished_spans()] == [("x", "r-9"), ("request", "r-9")]
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
    assert json.loads(receiver.logs[0]["body"])["req_id"] == "r-9"
    assert trace is not None
