"""Loading of a model: stages, paths, hashes, devices, and the event."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from inquest import _file_hash
from inquest._file_hash import HashInterrupted, digest_path
from inquest.init import current_load, instrumented_init, stage


class Traced:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = provider.get_tracer("test")

    def spans(self) -> dict[str, ReadableSpan]:
        return {s.name: s for s in self.exporter.get_finished_spans()}


@pytest.fixture
def traced() -> Traced:
    return Traced()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "v7.bin"
    path.write_bytes(b"weights" * 1000)
    return path


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_stages_path_hash_and_device(traced: Traced, model: Path) -> None:
    link = model.with_name("current")
    link.symlink_to(model.name)
    events: list[dict[str, Any]] = []
    ids: list[int] = []

    def on_event(event: dict[str, Any]) -> None:
        events.append(event)
        ids.append(trace.get_current_span().get_span_context().span_id)

    with instrumented_init(
        "ranker", configured_version="v7", path=link, device="cuda:0", on_event=on_event, tracer=traced.tracer
    ) as load:
        with load.stage("read weights"), traced.tracer.start_as_current_span("inner"):
            time.sleep(0.02)
        with load.stage("to device"):
            time.sleep(0.01)
        with load.stage("read weights"):
            time.sleep(0.01)
        load.device("cuda:0")

    event = events[0]
    assert event == load.event
    assert event["stages"]["read weights"] >= 0.03
    assert list(event["stages"]) == ["read weights", "to device"]
    assert 0 <= event["unstaged_seconds"] < event["seconds"]
    assert (event["configured_version"], event["configured_path"], event["real_path"]) == (
        "v7",
        str(link),
        str(model.resolve()),
    )
    assert (event["file_sha256"], event["hash_kind"], event["file_bytes"]) == (
        sha(model.read_bytes()),
        "file",
        7000,
    )
    assert (event["device"], event["fallback"]) == ("cuda:0", False)
    assert not {"path_changed", "error", "fallback_reason"} & set(event)

    spans = traced.spans()
    root = spans["model_load ranker"]
    assert root.context is not None
    assert ids == [root.context.span_id]
    assert spans["to device"].parent is not None
    assert spans["to device"].parent.span_id == root.context.span_id
    assert spans["inner"].parent == spans["inner"].parent
    assert spans["inner"].parent is not None
    assert spans["inner"].parent.span_id != root.context.span_id
    a = dict(root.attributes or {})
    assert a["model.path.real"] == event["real_path"]
    assert a["model.file.sha256"] == event["file_sha256"]
    assert a["model.device.fallback"] is False


def test_fallback() -> None:
    def f(requested: Any, actual: str, want: bool) -> None:
        with instrumented_init("m", device=requested) as load:
            load.device(actual)
        assert load.event["fallback"] is want
        assert ("fallback_reason" in load.event) is want

    f("cuda:0", "cpu", True)
    f("cuda", "cuda:1", False)
    f("gpu", "CUDAExecutionProvider", False)
    f("cuda", "CPUExecutionProvider", True)
    f("auto", "cpu", False)
    f(None, "cpu", False)
    f("cpu", "cpu", False)
    f("mps", "cpu", True)


def test_device_of_a_model() -> None:
    def f(model: Any, want: Any) -> None:
        with instrumented_init("m", device="cuda") as load:
            load.observe(model)
        assert load.event.get("device") == want

    f(SimpleNamespace(device="cuda:0"), "cuda:0")
    f(
        SimpleNamespace(parameters=lambda: [SimpleNamespace(device="cuda:0"), SimpleNamespace(device="cpu")]),
        "cpu",
    )
    f(SimpleNamespace(get_providers=lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"]), "cuda")
    f(object(), None)
    torch = pytest.importorskip("torch", reason="the device of a PyTorch model needs PyTorch")
    f(torch.nn.Linear(2, 2), "cpu")


def test_link_that_moves_while_loading(traced: Traced, model: Path) -> None:
    other = model.with_name("v8.bin")
    other.write_bytes(b"other")
    link = model.with_name("current")
    link.symlink_to(model.name)
    with instrumented_init("m", path=link, tracer=traced.tracer) as load:
        link.unlink()
        link.symlink_to(other.name)
    assert load.event["path_changed"] is True
    assert load.event["real_path"] == str(model.resolve())
    assert load.event["file_sha256"] == sha(model.read_bytes())


def test_file_that_changes_while_loading(model: Path) -> None:
    with instrumented_init("m", path=model) as load:
        model.write_bytes(b"other weights")
    assert load.event["path_changed"] is True


def test_failure_is_recorded_and_raised(traced: Traced, model: Path) -> None:
    events: list[dict[str, Any]] = []
    with (
        pytest.raises(MemoryError),
        instrumented_init("m", path=model, on_event=events.append, tracer=traced.tracer) as load,
        load.stage("to device"),
    ):
        raise MemoryError("out of memory")
    assert events[0]["error"] == "MemoryError: out of memory"
    assert events[0]["failed_stage"] == "to device"
    for name in ("model_load m", "to device"):
        assert traced.spans()[name].status.status_code is trace.StatusCode.ERROR


def test_missing_file_is_told(tmp_path: Path) -> None:
    with instrumented_init("m", path=tmp_path / "nothing") as load:
        pass
    assert "nothing" in load.event["hash_error"]
    assert "file_sha256" not in load.event


def test_logger_that_fails_does_not_undo_the_load(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: dict[str, Any]) -> None:
        raise RuntimeError("disk full")

    with instrumented_init("m", path=model, on_event=broken):
        pass
    assert "disk full" in caplog.text


def test_decorator(traced: Traced, model: Path) -> None:
    events: list[dict[str, Any]] = []

    @instrumented_init("m", path=model, on_event=events.append, device="cuda", tracer=traced.tracer)
    def load_model(size: int) -> Any:
        """Load."""
        with stage("read"):
            assert current_load() is not None
        return SimpleNamespace(device="cpu", size=size)

    assert load_model(3).size == 3
    load_model(4)
    assert load_model.__doc__ == "Load."
    assert [(e["device"], e["fallback"], list(e["stages"])) for e in events] == [("cpu", True, ["read"])] * 2
    assert current_load() is None

    @instrumented_init("n", on_event=events.append, tracer=traced.tracer)
    async def load_later() -> str:
        with stage("wait"):
            await asyncio.sleep(0.01)
        return "model"

    async def both() -> list[str]:
        return list(await asyncio.gather(load_later(), load_later()))

    assert asyncio.run(both()) == ["model", "model"]
    assert [list(e["stages"]) for e in events[2:]] == [["wait"], ["wait"]]
    with stage("outside of any load"):
        pass
    with pytest.raises(ValueError, match="hash_files"):
        instrumented_init("m", hash_files="maybe")


def test_stages_in_threads(traced: Traced) -> None:
    with instrumented_init("m", tracer=traced.tracer) as load:

        def shard(i: int) -> None:
            with load.stage("shard"):
                time.sleep(0.01)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(shard, range(8)))
    assert load.event["stages"]["shard"] >= 0.08
    root = traced.spans()["model_load m"].context
    shards = [s for s in traced.exporter.get_finished_spans() if s.name == "shard"]
    assert len(shards) == 8
    assert all(s.parent is not None and root is not None and s.parent.span_id == root.span_id for s in shards)


def test_hash_in_the_background(traced: Traced, tmp_path: Path) -> None:
    path = tmp_path / "big.bin"
    path.write_bytes(os.urandom(8 << 20))
    events: list[dict[str, Any]] = []
    span_ids: list[int] = []

    def on_event(event: dict[str, Any]) -> None:
        events.append(event)
        span_ids.append(trace.get_current_span().get_span_context().span_id)

    started = time.perf_counter()
    with instrumented_init(
        "m",
        path=path,
        hash_files="background",
        hash_bytes_per_second=40 << 20,
        on_event=on_event,
        tracer=traced.tracer,
    ) as load:
        pass
    assert time.perf_counter() - started < 0.15
    assert events == []
    assert load.wait(10)
    assert events[0]["file_sha256"] == sha(path.read_bytes())
    assert events[0]["hash_seconds"] >= 0.15
    root = traced.spans()["model_load m"].context
    assert root is not None
    assert span_ids == [root.span_id]


def test_event_is_not_lost_when_the_process_ends_first(tmp_path: Path) -> None:
    path = tmp_path / "big.bin"
    path.write_bytes(os.urandom(8 << 20))
    code = (
        "from inquest.init import instrumented_init\n"
        f"with instrumented_init('m', path={str(path)!r}, hash_files='background', hash_bytes_per_second=1e5,\n"
        "                       on_event=lambda e: print(e['hash_error'], flush=True)):\n"
        "    pass\n"
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "the process ended before the files were read"
    assert time.monotonic() - started < 30


class TestDigest:
    def test_tree(self, tmp_path: Path) -> None:
        (tmp_path / "b").mkdir()
        (tmp_path / "a.txt").write_bytes(b"1")
        (tmp_path / "b" / "c.txt").write_bytes(b"22")
        found = digest_path(tmp_path)
        lines = f"{sha(b'1')}  a.txt\n{sha(b'22')}  b/c.txt\n"
        assert (found.sha256, found.kind, found.files, found.size) == (sha(lines.encode()), "tree", 2, 3)
        (tmp_path / "b" / "c.txt").write_bytes(b"23")
        assert digest_path(tmp_path).sha256 != found.sha256
        (tmp_path / "link").symlink_to("a.txt")
        assert digest_path(tmp_path).files == 3

    def test_cache_and_change(self, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        first = digest_path(model)
        reads: list[int] = []
        monkeypatch.setattr(_file_hash._Pace, "step", lambda self, count: reads.append(count))
        assert digest_path(model) == first
        assert reads == []
        model.write_bytes(b"weightz" * 1000)  # same size
        assert digest_path(model).sha256 == sha(b"weightz" * 1000)
        assert sum(reads) == 7000

    def test_change_while_reading(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "m"
        path.write_bytes(b"x" * (3 << 20))

        def change(self: Any, count: int) -> None:
            with path.open("r+b") as file:
                file.write(b"y")

        monkeypatch.setattr(_file_hash._Pace, "step", change)
        assert digest_path(path).changed is True
        monkeypatch.undo()
        assert digest_path(path).changed is False

    def test_rate_and_stop(self, tmp_path: Path) -> None:
        path = tmp_path / "m"
        path.write_bytes(os.urandom(4 << 20))
        stop = threading.Event()
        threading.Timer(0.1, stop.set).start()
        started = time.monotonic()
        with pytest.raises(HashInterrupted):
            digest_path(path, bytes_per_second=1 << 20, stop=stop)
        assert 0.09 < time.monotonic() - started < 2
        started = time.monotonic()
        digest_path(path, bytes_per_second=20 << 20)
        assert time.monotonic() - started >= 0.19

    def test_errors(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(FileNotFoundError, match="neither"):
            digest_path(tmp_path / "nothing")
        monkeypatch.setattr(_file_hash, "_MAX_FILES", 2)
        for i in range(3):
            (tmp_path / str(i)).touch()
        with pytest.raises(ValueError, match="more than 2 files"):
            digest_path(tmp_path)
