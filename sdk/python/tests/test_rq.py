from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import inquest
from capture import Capture
from inquest import runtime
from running import free_port, started, wait_port


def work(number: int) -> None:
    """The job, run by a worker process."""
    inquest.EventLogger().inference(extra={"n": number})


def work_init() -> None:
    inquest.init("worker", os.environ["ENDPOINT"])


@pytest.mark.skipif(not shutil.which("redis-server"), reason="needs redis-server")
def test_job_carries_the_request(tmp_path: Path, receiver: Capture, process: None) -> None:
    import redis
    import rq

    import inquest.rq

    running = runtime.init("web", receiver.endpoint)
    with ExitStack() as stack:
        port = free_port()
        command = [
            "redis-server",
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--dir",
            str(tmp_path),
        ]
        wait_port(port, started(stack, tmp_path, "redis", command))
        connection = redis.Redis(port=port)
        queue = rq.Queue(connection=connection, job_class=inquest.rq.Job)
        with inquest.request("r-rq"), running.tracer.start_as_current_span("publish") as span:
            queue.enqueue("test_rq.work", 7)
        script = """
import os, redis, rq, test_rq, inquest.rq
test_rq.work_init()
connection = redis.Redis(port=int(os.environ["PORT"]))
rq.Worker(["default"], connection=connection, job_class=inquest.rq.Job).work(burst=True)
"""
        env = {**os.environ, "PORT": str(port), "ENDPOINT": receiver.endpoint}
        subprocess.run(
            [sys.executable, "-c", script], check=True, timeout=30, env=env, cwd=Path(__file__).parent
        )
        connection.close()
    event = receiver.events()[0]
    ids = (event["n"], event["req_id"], event["trace_id"])
    assert ids == (7, "r-rq", f"{span.get_span_context().trace_id:032x}")
    consumer = next(span for span in receiver.spans if span["kind"] == "SPAN_KIND_CONSUMER")
    assert consumer["spanId"] == event["span_id"]
    assert consumer["parentSpanId"] == f"{span.get_span_context().span_id:016x}"
