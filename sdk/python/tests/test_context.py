from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Optional

import pytest
from opentelemetry import context as otel

import inquest
from capture import Capture
from inquest import context as ctx


@pytest.fixture
def patched() -> Iterator[None]:
    ctx.instrument()
    yield
    ctx.uninstrument()


def seen() -> Optional[str]:
    return ctx.request_id()


def test_block_binds_and_lets_go() -> None:
    assert seen() is None
    with ctx.request("r-1", user_id="u") as outer:
        assert (seen(), outer.user_id) == ("r-1", "u")
        with ctx.request() as inner:
            assert (inner.id, inner.user_id) == ("r-1", "u")
        with ctx.request("r-2"):
            assert seen() == "r-2"
        assert seen() == "r-1"
    assert seen() is None


def test_request_outside_of_any_span_is_one_trace(receiver: Capture, process: None) -> None:
    running = inquest.init("s", receiver.endpoint)
    log = inquest.EventLogger()
    with inquest.request("r-1"):
        log.ingress("hello")
        with inquest.request():
            log.egress()
        carrier: dict[str, str] = {}
        ctx.inject(carrier)
    with ctx.attached(ctx.extract(carrier, otel.Context())), inquest.request():
        log.egress()
    assert running.flush()
    assert len({log["traceId"] for log in receiver.logs}) == 1 and len(receiver.logs) == 3
    first, second = receiver.spans
    assert (first["name"], second["name"]) == ("request", "request")
    assert second["parentSpanId"] == first["spanId"]
    assert [log["spanId"] for log in receiver.logs] == [first["spanId"]] * 2 + [second["spanId"]]


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("a", True),
        ("x" * 256, True),
        ("x" * 257, False),
        ("", False),
        (None, False),
        ("a b", False),
        ("a\n", False),
    ],
)
def test_valid_request_id(value: Optional[str], want: bool) -> None:
    assert ctx.valid_request_id(value) is want


def test_bad_id_is_told() -> None:
    with pytest.raises(ValueError, match="want 1 to 256"), ctx.request("a b"):
        pass


def test_headers_round_trip() -> None:
    carrier: dict[str, str] = {}
    with ctx.request("r-é,=;1", user_id="u 1", biz_type="qa") as request:
        request.input_hash = "0" * 64
        ctx.inject(carrier)
    with ctx.attached(ctx.extract(carrier)):
        assert ctx.current() == ctx.Request("r-é,=;1", "u 1", "qa", "0" * 64)


@pytest.mark.parametrize(
    ("carrier", "want"),
    [
        ({}, None),
        ({"x-request-id": "h"}, "h"),
        ({"baggage": "request.id=b"}, "b"),
        ({"baggage": "request.id=b", "x-request-id": "h"}, "h"),
        ({"baggage": "request.id=b", "x-request-id": "bad id"}, "b"),
        ({"baggage": "=;,;nonsense", "traceparent": "zz"}, None),
    ],
)
def test_extract(carrier: dict[str, str], want: Optional[str]) -> None:
    assert ctx.request_id(ctx.extract(carrier)) == want


def test_threads_of_our_own() -> None:
    found: list[Optional[str]] = []
    with ctx.request("r-t"):
        thread = ctx.Thread(target=lambda: found.append(seen()))
        thread.start()
        thread.join()
        with ctx.ThreadPoolExecutor(1) as pool:
            found.append(pool.submit(seen).result())
    assert found == ["r-t", "r-t"]


def test_patched_threads_and_pools(patched: None) -> None:
    found: list[Optional[str]] = []
    with futures.ThreadPoolExecutor(1) as pool:
        with ctx.request("r-1"):
            thread = threading.Thread(target=lambda: found.append(seen()))
            thread.start()
            thread.join()
            found.append(pool.submit(seen).result())
        with ctx.request("r-2"):
            found.extend(pool.map(lambda _: seen(), range(2)))
        # The pool's thread was started by r-1 and must not keep it.
        found.append(pool.submit(seen).result())
    assert found == ["r-1", "r-1", "r-2", "r-2", None]
    ctx.uninstrument()
    assert "start_bound" not in repr(threading.Thread.start)


def test_asyncio(patched: None) -> None:
    async def serve(id: str) -> list[Optional[str]]:
        with ctx.request(id):
            await asyncio.sleep(0.001)
            loop = asyncio.get_running_loop()
            task = asyncio.create_task(asyncio.sleep(0, seen()))
            inner = asyncio.create_task(later())
            return [
                seen(),
                await inner,
                await loop.run_in_executor(None, seen),
                await asyncio.to_thread(seen),
                await task,
            ]

    async def later() -> Optional[str]:
        await asyncio.sleep(0.001)
        return seen()

    async def main() -> list[list[Optional[str]]]:
        return await asyncio.gather(*(serve(f"r-{n}") for n in range(20)))

    assert asyncio.run(main()) == [[f"r-{n}"] * 5 for n in range(20)]


def test_carried_can_be_pickled() -> None:
    with ctx.request("r-p"):
        call = ctx.carried(seen)
    assert seen() is None
    assert pickle.loads(pickle.dumps(call))() == "r-p"


def log_one(n: int) -> tuple[int, Optional[str], str]:
    return os.getpid(), seen(), inquest.EventLogger().inference(extra={"n": n})


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_process_pool(method: str, tmp_path: Path, receiver: Capture, process: None) -> None:
    running = inquest.init("s", receiver.endpoint, str(tmp_path), threads=False)
    pool = inquest.ProcessPoolExecutor(2, multiprocessing.get_context(method))
    with pool, inquest.request("r-pool"), running.tracer.start_as_current_span("work") as span:
        trace_id = f"{span.get_span_context().trace_id:032x}"
        results = list(pool.map(log_one, range(6)))
    assert {id for _, id, _ in results} == {"r-pool"} and os.getpid() not in {pid for pid, _, _ in results}
    assert running.wait_shipped()
    receiver.wait(lambda r: len(r.logs) >= 6)
    assert sorted(event["n"] for event in receiver.events()) == list(range(6))
    assert {event["trace_id"] for event in receiver.events()} == {trace_id}
    assert {log["attributes"]["event.id"] for log in receiver.logs} == {id for _, _, id in results}


def test_patched_process_pool(patched: None) -> None:
    with futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool, ctx.request("r-x"):
        assert pool.submit(seen).result() == "r-x"
