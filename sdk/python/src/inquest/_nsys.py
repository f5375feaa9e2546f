"""Reads the NVTX ranges of an ``nsys export --type=sqlite`` file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional
from urllib.parse import quote

__all__ = ["NvtxEvent", "read_events", "session_epoch_ns"]

# Event types of the export's table ENUM_NSYS_EVENT_TYPE.
_CATEGORY, _MARK, _DOMAIN = 33, 34, 75
_NESTED = (59, 70)  # push/pop ranges of a thread; 70 and 71 come from imported text files
_FREE = (60, 71)  # start/end ranges of the process

_OPTIONAL = ("text", "textId", "globalTid", "endGlobalTid", "domainId", "category", "color")
_PAYLOADS = ("uint64Value", "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue")


@dataclass(frozen=True)
class NvtxEvent:
    """A range or a mark. Times are nanoseconds since the session's start."""

    name: str
    start: int
    end: Optional[int]
    """None for a mark."""
    nested: bool
    """A push/pop range, which nests within its thread."""
    pid: int
    tid: int
    domain: str = ""
    unfinished: bool = False
    """The range was open when the capture ended; ``end`` is the capture's last time."""
    attributes: dict[str, Any] = field(default_factory=dict)


def _open(path: Path) -> sqlite3.Connection:
    # Read only: a file of evidence must not change by being read.
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)


def _columns(db: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in db.execute(f"PRAGMA table_info({table})")}


def session_epoch_ns(path: Path) -> Optional[int]:
    """Return the Unix time in nanoseconds at which the session's clock began, if the export tells.

    Raises:
        sqlite3.Error: the file is no SQLite database.
    """
    with closing(_open(path)) as db:
        if "utcEpochNs" not in _columns(db, "TARGET_INFO_SESSION_START_TIME"):
            return None
        row = db.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()
        return None if row is None or row[0] is None else int(row[0])


def read_events(path: Path) -> Iterator[NvtxEvent]:
    """Yield ranges and marks, thread by thread, in the order in which they began, outer ones first.

    Columns that an export lacks are done without, apart from start, end and
    eventType.

    Raises:
        sqlite3.Error: the file is no SQLite database.
        ValueError: it has no table of NVTX events.
    """
    with closing(_open(path)) as db:
        columns = _columns(db, "NVTX_EVENTS")
        if not {"start", "end", "eventType"} <= columns:
            raise ValueError(
                f"cannot read NVTX ranges of {path}: no table NVTX_EVENTS; "
                "profile with --trace=nvtx and export with nsys export --type=sqlite"
            )
        domains, categories = _names(db, columns)
        last = db.execute('SELECT max(max(start), max(coalesce("end", start))) FROM NVTX_EVENTS').fetchone()[
            0
        ]
        payloads = [c for c in _PAYLOADS if c in columns]
        for row in _rows(db, columns, payloads):
            kind, start, end, name, tid, domain, category, color, *values = row
            attributes: dict[str, Any] = {}
            process = (int(tid or 0) >> 24) & 0xFFFFFF
            if category:
                key = (process, int(domain or 0), int(category))
                attributes["nvtx.category"] = categories.get(key, str(category))
            if color:
                attributes["nvtx.color"] = f"#{int(color) & 0xFFFFFFFF:08x}"
            for column, value in zip(payloads, values):
                if value is not None:
                    attributes["nvtx.payload"] = value
                    attributes["nvtx.payload_type"] = column[: -len("Value")]
            is_mark = kind == _MARK
            yield NvtxEvent(
                name=str(name) if name is not None else "(unnamed)",
                start=int(start),
                end=None if is_mark else max(int(start), int(last if end is None else end)),
                nested=kind in _NESTED,
                pid=process,
                tid=int(tid or 0) & 0xFFFFFF,
                domain=domains.get((process, int(domain or 0)), ""),
                unfinished=not is_mark and end is None,
                attributes=attributes,
            )


def _text(db: sqlite3.Connection, columns: set[str]) -> tuple[str, str]:
    """The expression of an event's text, and the join for exports that keep texts once, by number."""
    text = "e.text" if "text" in columns else "NULL"
    if "textId" in columns and "value" in _columns(db, "StringIds"):
        return f"coalesce({text}, s.value)", "LEFT JOIN StringIds s ON s.id = e.textId"
    return text, ""


def _names(
    db: sqlite3.Connection, columns: set[str]
) -> tuple[dict[tuple[int, int], str], dict[tuple[int, int, int], str]]:
    """Names of domains by process, and of categories by process and domain."""
    domains: dict[tuple[int, int], str] = {}
    categories: dict[tuple[int, int, int], str] = {}
    if not {"globalTid", "domainId"} <= columns:
        return domains, categories
    text, join = _text(db, columns)
    category = "e.category" if "category" in columns else "NULL"
    query = f"SELECT e.eventType, e.globalTid, e.domainId, {category}, {text} FROM NVTX_EVENTS e {join}"
    for kind, tid, domain, number, name in db.execute(
        f"{query} WHERE e.eventType IN ({_CATEGORY}, {_DOMAIN})"
    ):
        process = (int(tid or 0) >> 24) & 0xFFFFFF
        if name is None:
            continue
        if kind == _DOMAIN:
            domains[process, int(domain or 0)] = str(name)
        elif number is not None:
            categories[process, int(domain or 0), int(number)] = str(name)
    return domains, categories


def _rows(db: sqlite3.Connection, columns: set[str], payloads: list[str]) -> Iterator[tuple[Any, ...]]:
    text, join = _text(db, columns)
    known = {c: f"e.{c}" if c in columns else "NULL" for c in _OPTIONAL}
    selected = ", ".join(
        [
            "e.eventType",
            "e.start",
            'e."end"',
            text,
            known["globalTid"],
            known["domainId"],
            known["category"],
            known["color"],
            *(f"e.{c}" for c in payloads),
        ]
    )
    kinds = ", ".join(str(k) for k in (*_NESTED, *_FREE, _MARK))
    # An open range lasts to the end of the capture, so it sorts before what began with it.
    order = f'{known["globalTid"]}, e.start, coalesce(e."end", 9223372036854775807) DESC, e.rowid'
    where = f"e.eventType IN ({kinds}) AND e.start IS NOT NULL"
    yield from db.execute(f"SELECT {selected} FROM NVTX_EVENTS e {join} WHERE {where} ORDER BY {order}")
