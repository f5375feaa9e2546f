"""Format of the spool: the files that hold events until a receiver has them.

A spool is a folder. Each process writes files of its own::

    <time>-<pid>-<random>-<number>.spool   lines, appended only
    <same>.pos                             how far the file is shipped
    aside/                                 what could not be shipped, with the reason
    watchdog.lock, watchdog.log, status.json

A line is ``CRC SP JSON LF``: eight lower-case hex digits of the CRC-32 of the
JSON's bytes, one space, the JSON on one line, a line feed. The first line is
the header: ``{"inquest.spool": 1, "resource": …, "scope": …}``. Every other
line is one log record as OTLP/JSON writes it. ``cut -c10- FILE | jq`` reads it.

A line counts once its line feed is there and its checksum agrees. A last line
without line feed is what a crash tore: nobody was told that it was written.

The writer holds an exclusive ``flock`` on the file while it lives. The kernel
drops it when the process ends in whatever way, so an unlocked file is final.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

VERSION = 1
SUFFIX = ".spool"
ASIDE = "aside"
_PREFIX = 9  # eight digits and a space


class LineError(ValueError):
    """A complete line whose checksum or JSON is wrong: the disk or a person changed it."""


def encode_line(payload: bytes) -> bytes:
    """Return the line for one JSON text, which must not hold a line feed."""
    return b"%08x " % zlib.crc32(payload) + payload + b"\n"


def decode_line(line: bytes) -> bytes:
    """Return the JSON text of one line without its line feed.

    Raises LineError when the checksum does not agree.
    """
    head, payload = line[:_PREFIX], line[_PREFIX:]
    if len(head) < _PREFIX or head[8:9] != b" ":
        raise LineError("line has no checksum")
    try:
        want = int(head[:8], 16)
    except ValueError:
        raise LineError("line has no checksum") from None
    if zlib.crc32(payload) != want:
        raise LineError("checksum does not agree")
    return payload


def new_stem() -> str:
    """Return a file name without suffix that no other file has, sorted by time."""
    return f"{time.time_ns():016x}-{os.getpid()}-{secrets.token_hex(4)}"


def event_id(stem: str, offset: int) -> str:
    """Return the id of the line at offset (bytes) of a file.

    It is the same however often the line is sent, and no other line has it, so
    a recorder can drop what came twice.
    """
    return f"{stem}:{offset}"


@dataclass(frozen=True)
class Line:
    """One line that was read: offset and end in bytes from the file's begin.

    payload is None when the line is broken; reason then tells why.
    """

    offset: int
    end: int
    payload: Optional[bytes]
    reason: str = ""
    raw: bytes = b""


def read_lines(path: Path, offset: int, limit: int) -> Iterator[Line]:
    """Yield the complete lines from offset on, until limit bytes are read.

    At least one line is yielded when a complete one is there, however long.
    A torn last line is not yielded. Raises OSError when the file cannot be read.
    """
    with open(path, "rb") as file:
        file.seek(offset)
        start = offset
        while offset - start < limit:
            raw = file.readline()
            if not raw.endswith(b"\n"):
                return
            end = offset + len(raw)
            try:
                yield Line(offset, end, decode_line(raw[:-1]), raw=raw)
            except LineError as error:
                yield Line(offset, end, None, str(error), raw)
            offset = end


def read_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header of a file and the offset (bytes) of its first record.

    Raises LineError when there is none that this version understands.
    """
    for line in read_lines(path, 0, 1):
        if line.payload is None:
            raise LineError(f"header: {line.reason}")
        header = json.loads(line.payload)
        if not isinstance(header, dict) or header.get("inquest.spool") != VERSION:
            raise LineError("header: not a spool file of version 1")
        return header, line.end
    raise LineError("header: torn")


def sync_file(fd: int) -> None:
    """Bring a file's data, and its length, to the disk. Raises OSError."""
    with contextlib.suppress(ImportError):
        import fcntl

        # macOS: fsync reaches only the drive's cache.
        full = getattr(fcntl, "F_FULLFSYNC", None)
        if full is not None:
            fcntl.fcntl(fd, full)
            return
    datasync = getattr(os, "fdatasync", os.fsync)
    datasync(fd)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file so that a crash leaves the old or the new one, whole and durable."""
    temporary = path.with_name(path.name + ".new")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(fd, "wb", closefd=False) as file:
            file.write(data)
        sync_file(fd)
    finally:
        os.close(fd)
    os.replace(temporary, path)
    sync_folder(path.parent)


def read_position(path: Path) -> tuple[int, bool]:
    """Return how far a spool file is shipped: bytes, and whether that is all there will be."""
    try:
        position = json.loads(path.with_suffix(".pos").read_bytes())
        return int(position["offset"]), bool(position.get("done"))
    except (OSError, ValueError, KeyError, TypeError):
        # Without a position all is sent again: twice is better than never.
        return 0, False


def write_position(path: Path, offset: int, done: bool) -> None:
    """Note durably how far a spool file is shipped. Raises OSError."""
    text = json.dumps({"offset": offset, "done": done})
    write_whole(path.with_suffix(".pos"), text.encode() + b"\n")


def is_live(path: Path) -> bool:
    """Tell whether the process that writes the file lives and has it open."""
    import fcntl

    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(fd)
