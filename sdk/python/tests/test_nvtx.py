"""Ranges that are spans too, and spans from an export of Nsight Systems."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from pathlib import Path
from typing import Any, Optional

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from inquest import nvtx

EPOCH = 1_796_000_000_000_000_000
PUSH, START_END, MARK, CATEGORY, DOMAIN = 59, 60, 34, 33, 75

# The columns that the export's documentation lists.
SCHEMA = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, rangeId INT, category INT,
    color INT, text TEXT, globalTid INT, endGlobalTid INT, textId INT, domainId INT, uint64Value INT,
    int64Value INT, doubleValue REAL, uint32Value INT, int32Value INT, floatValue REAL, jsonTextId INT,
    jsonText TEXT, binaryData TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT, utcTime TEXT, localTime TEXT);
"""


class Export:
    def __init__(self, path: Path, schema: str = SCHEMA, epoch: Optional[int] = EPOCH) -> None:
        self.path = path
        self.db = sqlite3.connect(path)
        self.db.executescript(schema)
        if epoch is not None:
            self.db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, '', '')", (epoch,))

    def add(
        self, kind: int, name: Any, start: int, end: Optional[int], pid: int = 7, tid: int = 1, **more: Any
    ) -> None:
        # The upper bits are numbers of the machine and its hypervisor: they may make the whole negative.
        values = {
            "start": start,
            "end": end,
            "eventType": kind,
            "globalTid": (-5 << 48) | (pid << 24) | tid,
            **more,
        }
        values["textId" if isinstance(name, int) else "text"] = name
        names = ", ".join(f'"{n}"' for n in values)
        self.db.execute(
            f"INSERT INTO NVTX_EVENTS ({names}) VALUES ({', '.join('?' * len(values))})", [*values.values()]
        )

    def convert(self, **options: Any) -> tuple[nvtx.ExportSummary, dict[str, ReadableSpan]]:
        self.db.commit()
        exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        summary = nvtx.export_spans(self.path, provider=provider, **options)
        return summary, {s.name: s for s in exporter.get_finished_spans()}


@pytest.fixture
def export(tmp_path: Path) -> Export:
    return Export(tmp_path / "report.sqlite")


def parent_of(spans: dict[str, ReadableSpan], name: str) -> Optional[str]:
    parent = spans[name].parent
    by_id = {s.context.span_id: n for n, s in spans.items() if s.context}
    return None if parent is None else by_id.get(parent.span_id, "?")


def test_nesting_by_thread(export: Export) -> None:
    export.db.execute("INSERT INTO StringIds VALUES (5, 'decode')")
    export.add(PUSH, "step", 100, 1000)
    export.add(PUSH, "prefill", 100, 400)
    export.add(PUSH, 5, 400, 1000)
    export.add(PUSH, "attention", 500, 600)
    export.add(PUSH, "other thread", 200, 300, tid=2)
    export.add(PUSH, "next step", 1000, 1100)
    export.add(START_END, "copy", 150, 2000)
    summary, spans = export.convert()
    assert summary == nvtx.ExportSummary(spans=7)
    want = {
        "nsys report": None,
        "step": "nsys report",
        "prefill": "step",
        "decode": "step",
        "attention": "decode",
        "next step": "nsys report",
        "other thread": "nsys report",
        "copy": "nsys report",
    }
    assert {name: parent_of(spans, name) for name in spans} == want
    assert (spans["decode"].start_time, spans["decode"].end_time) == (EPOCH + 400, EPOCH + 1000)
    assert (spans["nsys report"].start_time, spans["nsys report"].end_time) == (EPOCH, EPOCH + 2000)
    assert dict(spans["step"].attributes or {}) == {"process.pid": 7, "thread.id": 1}
    assert (spans["nsys report"].attributes or {})["nsys.ranges"] == 7


def test_children_of_linked_ranges_join_the_trace(export: Export) -> None:
    trace_id, span_id = 0xABC, 0xDEF
    export.add(PUSH, f"prefill#{trace_id:032x}:{span_id:016x}", 0, 100)
    export.add(PUSH, "aten::mm", 10, 20)
    export.add(PUSH, "ampere_gemm", 12, 18)
    export.add(PUSH, "after", 100, 120)
    summary, spans = export.convert()
    assert (summary.spans, summary.joined) == (3, 1)
    mm = spans["aten::mm"]
    assert mm.parent is not None and mm.context is not None
    assert (mm.parent.span_id, mm.context.trace_id) == (span_id, trace_id)
    assert parent_of(spans, "ampere_gemm") == "aten::mm"
    assert parent_of(spans, "after") == "nsys report"
    summary, spans = export.convert(join=False)
    assert parent_of(spans, "aten::mm") == "prefill"


def test_domains_categories_colours_payloads_marks(export: Export) -> None:
    export.add(DOMAIN, "NCCL", 0, None, domainId=3)
    export.add(CATEGORY, "collective", 0, None, domainId=3, category=9)
    export.add(PUSH, "allReduce", 10, 50, domainId=3, category=9, color=0xFF00FF00, int64Value=4096)
    export.add(MARK, "flag", 20, None)
    export.add(MARK, "outside", 60, None)
    for i in range(150):
        export.add(MARK, f"m{i}", 30, None)
    summary, spans = export.convert()
    assert summary == nvtx.ExportSummary(spans=1, marks=100, marks_dropped=52)
    span = spans["allReduce"]
    a = dict(span.attributes or {})
    assert (a["nvtx.domain"], a["nvtx.category"], a["nvtx.color"]) == ("NCCL", "collective", "#ff00ff00")
    assert (a["nvtx.payload"], a["nvtx.payload_type"], a["nvtx.marks_dropped"]) == (4096, "int64", 51)
    assert (span.events[0].name, span.events[0].timestamp) == ("flag", EPOCH + 20)


def test_range_that_was_open_when_the_capture_ended(export: Export) -> None:
    export.add(PUSH, "open", 10, None)
    export.add(PUSH, "inner", 10, 90)
    summary, spans = export.convert()
    assert (summary.spans, summary.unfinished) == (2, 1)
    assert spans["open"].end_time == EPOCH + 90
    assert (spans["open"].attributes or {})["nvtx.unfinished"] is True
    assert parent_of(spans, "inner") == "open"


def test_old_export_without_most_columns(tmp_path: Path) -> None:
    schema = "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, globalTid INT);"
    old = Export(tmp_path / "old.sqlite", schema, epoch=None)
    old.add(PUSH, "step", 1, 5)
    with pytest.raises(ValueError, match="epoch_ns"):
        old.convert()
    _, spans = old.convert(epoch_ns=EPOCH)
    assert spans["step"].start_time == EPOCH + 1


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    empty = Export(tmp_path / "empty.sqlite", SCHEMA.replace("NVTX_EVENTS", "OTHER"))
    with pytest.raises(ValueError, match="no table NVTX_EVENTS"):
        empty.convert()
    with pytest.raises(FileNotFoundError):
        nvtx.export_spans(tmp_path / "nothing.sqlite")
    text = tmp_path / "text.sqlite"
    text.write_text("not a database, but a text that is long enough to have a header" * 20)
    with pytest.raises(sqlite3.DatabaseError):
        nvtx.export_spans(text)
    none = Export(tmp_path / "none.sqlite")
    assert none.convert() == (nvtx.ExportSummary(), {})


def test_parent_and_limit(export: Export) -> None:
    for i in range(10):
        export.add(PUSH, f"r{i}", i * 10, i * 10 + 5)
    tracer = TracerProvider().get_tracer("t")
    outer = tracer.start_span("job", context=Context())
    summary, spans = export.convert(parent=trace.set_span_in_context(outer), max_spans=4)
    assert (summary.spans, summary.not_exported) == (4, 6)
    assert all(s.parent == outer.get_span_context() for s in spans.values())


def test_no_span_is_lost_in_the_batch_processor(export: Export) -> None:
    for i in range(12_000):
        export.add(PUSH, f"r{i}", i * 10, i * 10 + 5)
    export.db.commit()
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    summary = nvtx.export_spans(export.path, provider=provider)
    assert summary.spans == 12_000
    assert len(exporter.get_finished_spans()) == 12_001
    provider.shutdown()


def test_random_nesting_agrees_with_a_stack(tmp_path: Path) -> None:
    rng = random.Random(6)
    for round_ in range(20):
        export = Export(tmp_path / f"r{round_}.sqlite")
        want: dict[str, Optional[str]] = {}
        rows: list[tuple[str, int, int, int]] = []
        for tid in range(3):
            clock, stack = 0, []
            for i in range(60):
                clock += rng.randint(1, 5)
                if stack and rng.random() < 0.5:
                    name, start = stack.pop()
                    rows.append((name, start, clock, tid))
                else:
                    name = f"{tid}-{i}"
                    want[name] = stack[-1][0] if stack else f"nsys r{round_}"
                    stack.append((name, clock))
            while stack:
                clock += 1
                name, start = stack.pop()
                rows.append((name, start, clock, tid))
        rng.shuffle(rows)
        for name, start, end, tid in rows:
            export.add(PUSH, name, start, end, tid=tid)
        _, spans = export.convert()
        assert {n: parent_of(spans, n) for n in want} == want


# Ranges while the program runs


def traced() -> tuple[Any, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test"), exporter


def test_range_is_a_span_with_or_without_nvtx() -> None:
    tracer, exporter = traced()
    with nvtx.range("outer", attributes={"batch": 4}, tracer=tracer) as outer:
        assert trace.get_current_span() is outer
        with pytest.raises(KeyError), nvtx.range("inner", tracer=tracer):
            raise KeyError("x")
    spans = {s.name: s for s in exporter.get_finished_spans()}
    assert spans["inner"].parent == outer.get_span_context()
    assert spans["inner"].status.status_code is trace.StatusCode.ERROR
    assert (spans["outer"].attributes or {})["batch"] == 4
    assert (spans["outer"].attributes or {}).get("nvtx.backend") == nvtx.backend()


def test_texts_and_order_of_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def start(text: str) -> str:
        calls.append(("start", text))
        return text

    fake = nvtx._Backend(
        "nvtx",
        lambda text: calls.append(("push", text)),
        lambda: calls.append("pop"),
        start,
        lambda handle: calls.append(("end", handle)),
    )
    monkeypatch.setattr(nvtx, "_find_backend", lambda: fake)
    tracer, _ = traced()
    with nvtx.range("a", tracer=tracer) as span:
        pass
    context = span.get_span_context()
    assert calls == [("push", f"a#{context.trace_id:032x}:{context.span_id:016x}"), "pop"]
    calls.clear()
    with nvtx.range("a", tracer=tracer, link=False):
        pass
    assert calls == [("push", "a"), "pop"]
    calls.clear()

    @nvtx.annotate(tracer=tracer, link=False)
    async def task() -> None:
        await asyncio.sleep(0.01)

    async def both() -> None:
        await asyncio.gather(task(), task())

    asyncio.run(both())
    assert [c[0] for c in calls] == ["start", "start", "end", "end"]


def test_real_nvtx_package() -> None:
    pytest.importorskip("nvtx", reason="the test of real NVTX calls needs the nvtx package")
    assert nvtx.backend() == "nvtx"
    tracer, exporter = traced()

    @nvtx.annotate("step", tracer=tracer)
    def step() -> int:
        return 3

    @nvtx.annotate(tracer=tracer)
    async def later() -> int:
        return step()

    assert asyncio.run(later()) == 3
    assert [s.name for s in exporter.get_finished_spans()] == [
        "step",
        "test_real_nvtx_package.<locals>.later",
    ]
    assert all((s.attributes or {})["nvtx.backend"] == "nvtx" for s in exporter.get_finished_spans())
