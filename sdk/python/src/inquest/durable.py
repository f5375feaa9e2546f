"""Durable file writer: a record is on the disk before the call returns.

Threads that append at the same time share one fsync (group commit): the first
becomes the leader and writes what all of them brought; the others wait for it.
No thread of its own is needed, so a fork or a crash leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from inquest import spool

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_BATCH = 4 << 20  # bytes in one write
_SCAN_S = 5.0  # how old the measured size of the folder may be


class SpoolError(OSError):
    """An event is not known to be durable. It may arrive nevertheless."""


class SpoolFullError(SpoolError):
    """The disk, the quota or the spool's own limit is full. Free space, or let the receiver catch up."""


class EventTooLargeError(SpoolError):
    """One record is longer than the limit of a line. Send less, or raise max_line."""


@dataclass(frozen=True)
class Limits:
    """Limits of a spool, in bytes and seconds."""

    max_line: int = 1 << 20
    max_file: int = 64 << 20
    max_total: int = 4 << 30
    max_age_s: float = 3600.0  # a file is closed after this time, so that it can expire


@dataclass
class Counters:
    """What one writer did. Read without a lock: each number is exact, together they may be torn."""

    events: int = 0
    bytes: int = 0
    syncs: int = 0
    refused_full: int = 0
    refused_large: int = 0
    failed: int = 0


@dataclass
class _Entry:
    line: bytes
    sync: bool
    done: bool = False
    id: str = ""
    error: Optional[SpoolError] = None


@dataclass
class _File:
    fd: int
    path: Path
    stem: str
    offset: int
    opened: float
    dirty: bool = field(default=False)


class SpoolWriter:
    """Appends records to files of one spool folder. All methods may be called by any thread.

    A forked child continues with files of its own.
    """

    def __init__(self, folder: Path, header: Mapping[str, Any], limits: Optional[Limits] = None) -> None:
        """Make the folder and the first file. header holds the OTLP resource and scope.

        Raises SpoolError when the folder cannot be written.
        """
        self.folder = folder
        self.limits = limits or Limits()
        self.counters = Counters()
        self._header = spool.encode_line(
            json.dumps({"inquest.spool": spool.VERSION, **header}, ensure_ascii=False).encode()
        )
        self.files = 0  # opened so far, by this process and those it was forked from
        self._closed = False
        self._file: Optional[_File] = None
        self._usage = 0
        self._scanned = float("-inf")
        self._reset()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._open()
        except OSError as error:
            kind = SpoolFullError if error.errno in _FULL else SpoolError
            text = os.strerror(error.errno) if error.errno else str(error)
            raise kind(error.errno, f"cannot use spool {folder}: {text}") from error
        reference = weakref.WeakMethod(self._after_fork)
        os.register_at_fork(after_in_child=lambda: (reference() or _nothing)())

    def _reset(self) -> None:
        self._condition = threading.Condition()
        self._pending: list[_Entry] = []
        self._committing = False
        self._leader = 0

    def _after_fork(self) -> None:
        # The lock belongs to the parent's open file and stays with it.
        self._reset()
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file.fd)
            self._file = None
        self._scanned = float("-inf")

    def append(self, payload: bytes, *, sync: bool = True) -> str:
        """Append one record (JSON on one line) and return its event id.

        When it has returned with sync, the record survives SIGKILL and power
        loss; without, it survives SIGKILL only. Raises SpoolFullError,
        EventTooLargeError or SpoolError; the record is then not known to be
        durable, and counted.
        """
        line = spool.encode_line(payload)
        if len(line) > self.limits.max_line:
            self.counters.refused_large += 1
            raise EventTooLargeError(
                errno.EMSGSIZE, f"cannot write event: {len(line)} bytes, the limit is {self.limits.max_line}"
            )
        entry = _Entry(line, sync)
        with self._condition:
            if self._closed:
                raise SpoolError(errno.EBADF, "cannot write event: the spool is closed")
            if self._committing and self._leader == threading.get_ident():
                raise SpoolError(errno.EDEADLK, "cannot write event: a signal handler interrupted a write")
            self._pending.append(entry)
            while not entry.done:
                if self._committing:
                    self._condition.wait()
                else:
                    self._lead()
        if entry.error is not None:
            raise entry.error
        return entry.id

    def close(self) -> None:
        """Bring all to the disk and let go of the file. The writer is of no use afterwards."""
        with self._condition:
            while self._committing:
                self._condition.wait()
            self._closed = True
            with contextlib.suppress(OSError):
                self._finish()

    def _lead(self) -> None:
        """Commit what is pending. Called with the lock, which is released meanwhile."""
        batch: list[_Entry] = []
        size = 0
        while self._pending and (not batch or size + len(self._pending[0].line) <= _BATCH):
            size += len(self._pending[0].line)
            batch.append(self._pending.pop(0))
        self._committing, self._leader = True, threading.get_ident()
        self._condition.release()
        try:
            self._commit(batch, size)
        except OSError as error:
            _fail(batch, _named(error))
        except BaseException:
            # Interrupted, perhaps in the middle of a line: go on in another file.
            self._drop()
            _fail(batch, SpoolError(errno.EINTR, "cannot write event: interrupted"))
            raise
        finally:
            self._condition.acquire()
            self._committing = False
            for entry in batch:
                entry.done = True
                self._count(entry)
            self._condition.notify_all()

    def _count(self, entry: _Entry) -> None:
        if entry.error is None:
            self.counters.events += 1
            self.counters.bytes += len(entry.line)
        elif isinstance(entry.error, SpoolFullError):
            self.counters.refused_full += 1
        else:
            self.counters.failed += 1

    def _commit(self, batch: list[_Entry], size: int) -> None:
        self._check_total(size)
        file = self._ready(size)
        start = file.offset
        written, error = _write(file.fd, b"".join(entry.line for entry in batch))
        end, whole = start, []
        for entry in batch:
            if end + len(entry.line) - start > written:
                break
            entry.id = spool.event_id(file.stem, end)
            end += len(entry.line)
            whole.append(entry)
        file.offset, file.dirty = end, True
        self._usage += end - start
        if any(entry.sync for entry in whole):
            try:
                self._sync(file)
            except OSError:
                # What is on the disk is unknown now: never append to this file again.
                self._drop()
                raise
        if error is not None:
            _fail(batch[len(whole) :], error)
            self._cut(file)
            if isinstance(error, SpoolFullError) and file.offset > len(self._header):
                # Closed, it can be removed once it is shipped, which makes room.
                with contextlib.suppress(OSError):
                    self._finish()

    def _cut(self, file: _File) -> None:
        """Remove the torn line that a failed write left."""
        try:
            os.ftruncate(file.fd, file.offset)
        except OSError:
            self._drop()

    def _sync(self, file: _File) -> None:
        spool.sync_file(file.fd)
        file.dirty = False
        self.counters.syncs += 1

    def _check_total(self, size: int) -> None:
        now = time.monotonic()
        if now - self._scanned > _SCAN_S:
            self._usage, self._scanned = _folder_size(self.folder), now
        if self._usage + size > self.limits.max_total:
            raise SpoolFullError(
                errno.ENOSPC,
                f"cannot write event: spool {self.folder} holds {self._usage} bytes, "
                f"the limit is {self.limits.max_total}; is the receiver away?",
            )

    def _ready(self, size: int) -> _File:
        """Return the file to append to, a new one where the present one is full or old."""
        file = self._file
        if file is not None and file.offset > len(self._header):
            old = time.monotonic() - file.opened > self.limits.max_age_s
            if old or file.offset + size > self.limits.max_file:
                self._finish()
        return self._file or self._open()

    def _open(self) -> _File:
        self.files += 1
        stem = f"{spool.new_stem()}-{self.files}"
        path = self.folder / (stem + spool.SUFFIX)
        temporary = path.with_suffix(".tmp")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            # Locked before it has its name: a shipper never takes it for a dead one.
            fcntl.flock(fd, fcntl.LOCK_EX)
            written, error = _write(fd, self._header)
            if error is not None:
                raise error
            spool.sync_file(fd)
            os.rename(temporary, path)
            spool.sync_folder(self.folder)
        except BaseException:
            os.close(fd)
            for name in (temporary, path):
                with contextlib.suppress(OSError):
                    name.unlink()
            raise
        self._file = _File(fd, path, stem, written, time.monotonic())
        return self._file

    def _finish(self) -> None:
        if self._file is not None:
            try:
                if self._file.dirty:
                    self._sync(self._file)
            finally:
                self._drop()

    def _drop(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file.fd)
            self._file = None


def _write(fd: int, data: bytes) -> tuple[int, Optional[SpoolError]]:
    """Write all, and return how many bytes went and what stopped it."""
    view, done = memoryview(data), 0
    while done < len(data):
        try:
            done += os.write(fd, view[done:])
        except OSError as error:
            return done, _named(error)
    return done, None


def _named(error: OSError) -> SpoolError:
    if isinstance(error, SpoolError):
        return error
    if error.errno in _FULL:
        return SpoolFullError(error.errno, f"cannot write event: {error.strerror}; free space on the disk")
    return SpoolError(error.errno, f"cannot write event: {error.strerror or error}")


def _fail(batch: list[_Entry], error: SpoolError) -> None:
    for entry in batch:
        entry.error = error


def _folder_size(folder: Path) -> int:
    total = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                total += entry.stat().st_size if entry.is_file() else 0
    return total


def _nothing() -> None:
    pass
