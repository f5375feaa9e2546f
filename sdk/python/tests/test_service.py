"""A real FastAPI service with Celery workers: one identity on every record, through every hop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from capture import Capture
from running import serve

COUNT = 20


@pytest.mark.parametrize("durable", [True, False])
def test_identity_through_every_hop(
    durable: bool,
    tmp_path: Path,
    receiver: Capture,
    broker: dict[str, str],
    validate: Callable[[dict[str, Any]], None],
) -> None:
    env = {**broker, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint}
    if durable:
        env["INQUEST_SPOOL"] = str(tmp_path / "spool")
    with ExitStack() as stack:
        answered = serve(stack, tmp_path, env, {}, COUNT)
        receiver.wait(lambda r: finished(r) == COUNT, 30)
    # Both are ended now; what they still had queued has been sent.
    retried, failed = COUNT // 5, COUNT // 5
    wanted = COUNT * (3 + 2 + 1 + 1 + 1 + 1 + 1) + retried
    receiver.wait(lambda r: len(r.logs) >= wanted)
    assert len(receiver.logs) == wanted
    ids = set(answered.values())
    assert len(ids) == COUNT

    spans = {span["spanId"]: span for span in receiver.spans}
    traces: dict[str, set[str]] = {id: set() for id in ids}
    services: dict[str, set[str]] = {id: set() for id in ids}
    for record in [*receiver.logs, *receiver.spans]:
        request = record["attributes"].get("request.id")
        assert request in ids, f"no request id on {record}"
        assert record.get("spanId") in spans, f"no span of {record}"
        traces[request].add(record["traceId"])
        services[request].add(record["resource"]["service.name"])
    assert {len(found) for found in traces.values()} == {1}, "a request has several traces"
    assert set().union(*traces.values()).__len__() == COUNT, "requests share a trace"
    assert all(found == {"web", "worker"} for found in services.values())

    events = receiver.events()
    assert len(events) == COUNT * 5
    for event in events:
        validate(event)
        assert event["req_id"] in ids
    assert len({event["business"]["input_hash"] for event in events}) == 1, (
        "the hash did not reach the worker"
    )
    assert {event["business"]["user_id"] for event in events} == {f"u-{n}" for n in range(COUNT)}

    kinds = [span["kind"] for span in receiver.spans]
    assert kinds.count("SPAN_KIND_CONSUMER") == kinds.count("SPAN_KIND_PRODUCER") == 2 * COUNT + retried
    for span in receiver.spans:
        parent = span.get("parentSpanId")
        if span["kind"] == "SPAN_KIND_CONSUMER":
            assert spans[parent]["kind"] == "SPAN_KIND_PRODUCER"
        elif span["kind"] == "SPAN_KIND_SERVER":
            assert not parent
    decisions = [s for s in receiver.spans if s["attributes"].get("decision.type") == "retry"]
    assert len(decisions) == retried and "the model is slow" in decisions[0]["attributes"]["decision.reason"]
    errors = [s for s in receiver.spans if s["name"].endswith("finish") and s["status"].get("code")]
    assert len(errors) == failed and "cannot deliver" in errors[0]["status"]["message"]


def finished(receiver: Capture) -> int:
    return sum(1 for log in receiver.logs if str(log["body"]).startswith("finished"))


def test_without_the_library_in_the_worker_the_chain_tears_there(
    tmp_path: Path, receiver: Capture, broker: dict[str, str]
) -> None:
    env = {**broker, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint}
    with ExitStack() as stack:
        answered = serve(stack, tmp_path, env, {"CARRY": "0"}, 3)
        receiver.wait(lambda r: finished(r) >= 3, 30)
    receiver.wait(lambda r: len(r.events()) >= 15)
    by_service: dict[str, set[bool]] = {"web": set(), "worker": set()}
    for log in receiver.logs:
        known = log["attributes"].get("request.id") in answered.values()
        by_service[log["resource"]["service.name"]].add(known)
    assert by_service == {"web": {True}, "worker": {False}}


def test_log_records_of_celery_carry_the_ids(
    tmp_path: Path, receiver: Capture, broker: dict[str, str]
) -> None:
    """A handler on the root logger outlives Celery's own setup, and "received" belongs to its request."""
    env = {**broker, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint, "ROOT": "1"}
    with ExitStack() as stack:
        answered = serve(stack, tmp_path, env, {}, 5)
        receiver.wait(lambda r: finished(r) == 5, 30)
    spans = {span["spanId"] for span in receiver.spans}
    lines = [log for log in receiver.logs if str(log["body"]).startswith("Task shop.")]
    kinds = {str(log["body"]).split("] ")[1].split(" ")[0].rstrip(":") for log in lines}
    assert kinds == {"received", "succeeded", "retry", "raised"}
    assert len([log for log in lines if "received" in log["body"]]) == 5 + 5 + 1
    for log in lines:
        assert log["attributes"].get("request.id") in answered.values(), log
        assert log["spanId"] in spans, log
