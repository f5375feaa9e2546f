"""The service of shop.py on a running inquest: what its coverage report says, with and without the library."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Optional
from urllib.parse import urlencode

import pytest
import redis

from recorder import Recorder
from running import serve

COUNT = 200
LONG = pytest.mark.skipif(not os.environ.get("INQUEST_LONG"), reason="long: set INQUEST_LONG=1")


def report(recorder: Recorder) -> tuple[dict[str, Any], str]:
    """Return the coverage report of the API, and the one that the command prints."""
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1))
    found = recorder.get("/api/v1/coverage?" + urlencode({"start": recorder.begin, "end": end}))
    return found, recorder.command("coverage", "--from", recorder.begin, "--to", end)


def test_all_ids_on_all_records(tmp_path: Path, recorder: Recorder, broker: dict[str, str]) -> None:
    spool = str(tmp_path / "spool")
    env = {**broker, "OTEL_EXPORTER_OTLP_ENDPOINT": recorder.endpoint, "INQUEST_SPOOL": spool}
    retried = COUNT // 5
    logs, spans = COUNT * 10 + retried, COUNT * 5 + retried * 2
    with ExitStack() as stack:
        answered = serve(stack, tmp_path, env, {}, COUNT, at_once=8)
        recorder.wait('{record.type="log"}', logs)
    recorder.wait('{record.type="span"}', spans)
    assert recorder.count('{record.type="log"}') == logs
    assert recorder.count('{record.type="span"}') == spans
    assert not recorder.get("/api/v1/deadletters/counts")

    found, text = report(recorder)
    assert [service["name"] for service in found["services"]] == ["web", "worker"]
    for service in found["services"]:
        for name in ("trace_id", "span_id", "request_id"):
            assert service[name]["own"] == service["records"] > COUNT, f"{name} of {service}"
    assert found["tears"] == []
    assert text.count("100.0 %") == 2 * 4 and "The chain tears nowhere." in text

    # Each request is one trace through both services, and each trace one request.
    rows = recorder.query(
        'record.type:in(log, span) | stats by ("request.id") count_uniq(trace_id) traces, '
        'count_uniq("service.name") services, count() n'
    )
    assert {row["request.id"] for row in rows} == set(answered.values())
    assert {(row["traces"], row["services"]) for row in rows} == {("1", "2")}
    assert {int(row["n"]) for row in rows} <= {15, 18}
    assert len(recorder.query("trace_id:* | stats by (trace_id) count() n")) == COUNT


@pytest.mark.parametrize(
    ("env", "kinds", "place", "share"),
    [
        pytest.param({"TELEMETRY": "logs"}, ["no_ids"], "worker", (0, 0), id="log records"),
        pytest.param(
            {"TELEMETRY": "celery"}, ["no_ids"], "worker", (0, 0), id="log records of Celery too", marks=LONG
        ),
        pytest.param({"TELEMETRY": "spans"}, ["broken_context"], "worker", (1, 0), id="spans of its own"),
        # Where the queue is long, times do not tell for sure.
        pytest.param(
            {"TELEMETRY": "spans", "SPAN": "answer"},
            ["broken_context", "untaken"],
            "worker",
            (1, 0),
            id="spans of other names",
            marks=LONG,
        ),
        pytest.param(
            {"TELEMETRY": "stock"},
            ["request_id_lost"],
            "worker",
            (1, 0),
            id="instrumentation of OpenTelemetry",
        ),
        # Nothing tells the worker's name: the report names the queue.
        pytest.param({"TELEMETRY": "none"}, ["untaken"], "celery", None, id="nothing", marks=LONG),
    ],
)
def test_without_the_library_the_worker_is_named(
    env: dict[str, str],
    kinds: list[str],
    place: str,
    share: Optional[tuple[int, int]],
    tmp_path: Path,
    recorder: Recorder,
    broker: dict[str, str],
) -> None:
    if not broker["BROKER"].startswith("redis:"):
        pytest.skip("needs redis-server")
    settings = {**broker, "OTEL_EXPORTER_OTLP_ENDPOINT": recorder.endpoint}
    with ExitStack() as stack:
        serve(stack, tmp_path, settings, env, COUNT, "bare_worker:queue", at_once=8)
        if share:
            recorder.wait('{record.type="log"} "finished"', COUNT)
        else:
            wait_taken(broker["BROKER"])
    recorder.wait('{record.type="span","service.name"="web"}', 2 * COUNT)
    found, text = report(recorder)
    services = {service["name"]: service for service in found["services"]}
    web = services.pop("web")
    assert web["trace_id"]["own"] == web["span_id"]["own"] == web["request_id"]["own"] == web["records"]
    tear, *others = found["tears"]
    assert not others, others
    assert (tear["from"], tear["to"], tear["share"]) == ("web", place, 1) and tear["kind"] in kinds, tear
    assert place in text.split("Where the chain tears:")[1]
    shares = [
        (found["trace_id"]["own_share"], found["request_id"]["own_share"]) for found in services.values()
    ]
    assert shares == ([share] if share else [])


def wait_taken(broker: str) -> None:
    """Wait until no message is in the queue or at work."""
    queue, until = redis.Redis.from_url(broker), time.monotonic() + 30
    while queue.llen("celery") or queue.hlen("unacked"):
        assert time.monotonic() < until, "the worker takes no messages"
        time.sleep(0.05)
