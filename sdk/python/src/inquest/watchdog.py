"""Watchdog: a process that ships a spool folder and outlives the application.

``inquest.init(spool=…)`` starts it, one a folder. It sends what the files hold
to an OTLP/HTTP receiver, notes the acknowledged position durably, and ends
when no application writes to the folder and all is shipped. While the receiver
is away it stays for ``linger`` seconds after the last application has gone;
what is left then goes out when the next application starts.

Delivery is at least once. A crash between the receiver's answer and the note
sends one batch again, with the same ``event.id`` on each record.

No application is ever without one: an application looks for its watchdog after
its file is there, and a watchdog that is about to end looks for files once more,
both holding ``watchdog.gate``. So the one sees the other or starts anew.

By hand: ``python -m inquest.watchdog --spool DIR --endpoint http://HOST:4318``.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import logging
import logging.handlers
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Optional

from inquest import spool
from inquest.retention import Retention
from inquest.shipping import Outcome, Shipper, logs_url

_log = logging.getLogger("inquest.watchdog")

_ASIDE_LIMIT = 256 << 20  # bytes; beyond it shipping stops rather than losing anything
_MAX_WAIT_S = 30.0
_MAX_ERRORS = 1 << 20  # bytes of what broken watchdogs said


@dataclass(frozen=True)
class Settings:
    """Settings of one watchdog: sizes in bytes, times in seconds."""

    folder: Path
    endpoint: str
    interval_s: float = 0.2
    linger_s: float = 24 * 3600.0
    keep_s: float = 7 * 24 * 3600.0
    max_total: int = 4 << 30
    batch_records: int = 512
    batch_bytes: int = 1 << 20


@dataclass
class Status:
    """What a watchdog did since it started; written to status.json."""

    pid: int = 0
    shipped: int = 0
    set_aside: int = 0
    torn: int = 0
    backlog_bytes: int = 0
    last_error: str = ""
    time: float = 0.0


@dataclass
class _File:
    path: Path
    offset: int
    done: bool
    header: dict[str, Any] = field(default_factory=dict)
    noted: bool = True


class _Away(Exception):
    """The receiver cannot take anything now."""

    def __init__(self, detail: str, wait_s: float = 0.0) -> None:
        super().__init__(detail)
        self.wait_s = wait_s


class Watchdog:
    """Ships one folder. Not for several threads, except stop()."""

    def __init__(self, settings: Settings, shipper: Optional[Shipper] = None) -> None:
        self.settings = settings
        self.status = Status(pid=os.getpid())
        self._shipper = shipper or Shipper(logs_url(settings.endpoint))
        self._retention = Retention(settings.folder, settings.keep_s, settings.max_total)
        self._files: dict[str, _File] = {}
        self._stop = threading.Event()
        self._shown: Optional[Status] = None
        self._unsaved = ""

    def stop(self) -> None:
        """Ask run to end after one more attempt. Safe from a signal handler."""
        self._stop.set()

    def run(self, lock: Optional[IO[str]] = None) -> None:
        """Ship until no application is left and all is sent, or the time is over. Then let go of the lock."""
        failures, last_live = 0, time.monotonic()
        while True:
            stopping, wait = self._stop.is_set(), self.settings.interval_s
            try:
                live = self.ship()
                failures, self.status.last_error = 0, ""
            except (_Away, OSError) as error:
                live = self._any_live()
                failures += 1
                wait = min(_MAX_WAIT_S, 0.25 * 2 ** min(failures, 10)) * random.uniform(0.5, 1.0)
                wait = max(wait, min(getattr(error, "wait_s", 0.0), 300.0))
                if str(error) != self.status.last_error:
                    _log.warning("cannot ship: %s; trying again", error)
                self.status.last_error = str(error)
            now = time.monotonic()
            last_live = now if live else last_live
            self._retention.apply(self._done())
            self._show()
            if stopping or (not live and not failures and self._end(lock)):
                return
            if not live and now - last_live > self.settings.linger_s:
                _log.error(
                    "ends with %d bytes not shipped: receiver away too long", self.status.backlog_bytes
                )
                return
            self._stop.wait(wait)

    def _end(self, lock: Optional[IO[str]]) -> bool:
        """Let go of the lock unless an application came meanwhile."""
        with _gate(self.settings.folder, fcntl.LOCK_EX):
            for path in self.settings.folder.glob("*" + spool.SUFFIX):
                if not spool.read_position(path)[1]:
                    return False
            if lock is not None:
                lock.close()
            return True

    def ship(self) -> bool:
        """Send all that is there and tell whether an application still writes.

        Raises OSError when the folder fails; an internal error when the receiver is away.
        """
        any_live = False
        names = sorted(path.name for path in self.settings.folder.glob("*" + spool.SUFFIX))
        for gone in set(self._files) - set(names):
            del self._files[gone]
        for name in names:
            file = self._files.get(name) or self._enter(name)
            if not file.noted:
                self._save(file)
            if file.done:
                continue
            # Asked before reading: what a dead one wrote is then all there.
            live = spool.is_live(file.path)
            any_live = any_live or live
            if not file.header and not self._open(file):
                continue
            while self._ship_some(file):
                pass
            if not live:
                self._finish(file)
        return any_live

    def _enter(self, name: str) -> _File:
        path = self.settings.folder / name
        offset, done = spool.read_position(path)
        file = self._files[name] = _File(path, offset, done)
        return file

    def _open(self, file: _File) -> bool:
        try:
            file.header, begin = spool.read_header(file.path)
        except ValueError as error:
            size = file.path.stat().st_size
            self._aside(file, [spool.Line(0, size, None, f"{error}; the whole file is left in place")])
            self._note(file, size, done=True)
            return False
        file.offset = max(file.offset, begin)
        return True

    def _ship_some(self, file: _File) -> bool:
        lines = []
        for line in spool.read_lines(file.path, file.offset, self.settings.batch_bytes):
            lines.append(line)
            if len(lines) >= self.settings.batch_records:
                break
        if not lines:
            return False
        good, records, broken = [], [], []
        for line in lines:
            record = _record(file.path.stem, line)
            if record is None:
                broken.append(_because(line, line.reason or "not a log record"))
            else:
                good.append(line)
                records.append(record)
        self._aside(file, broken)
        if records:
            self._send(file, good, records)
        self._note(file, lines[-1].end)
        return True

    def _send(self, file: _File, lines: Sequence[spool.Line], records: Sequence[dict[str, Any]]) -> None:
        answer = self._shipper.send(file.header, records)
        if answer.outcome is Outcome.RETRY:
            raise _Away(answer.detail, answer.wait_s)
        if answer.outcome is Outcome.TAKEN:
            self.status.shipped += len(records) - answer.rejected
            if answer.rejected:
                # Which ones is not said, so all are kept where a person can look.
                reason = f"receiver rejected {answer.rejected} of {len(records)}: {answer.detail}"
                self._aside(file, [_because(line, reason) for line in lines])
            return
        if len(records) == 1:
            self._aside(file, [_because(lines[0], f"receiver refused it: {answer.detail}")])
            return
        half = len(records) // 2
        self._send(file, lines[:half], records[:half])
        self._send(file, lines[half:], records[half:])

    def _finish(self, file: _File) -> None:
        size = file.path.stat().st_size
        if size > file.offset:
            with open(file.path, "rb") as rest:
                rest.seek(file.offset)
                raw = rest.read(1 << 20)
            reason = "torn by a crash: its logger had not returned"
            self._aside(file, [spool.Line(file.offset, size, None, reason, raw)])
            self.status.torn += 1
        self._note(file, size, done=True)

    def _note(self, file: _File, offset: int, done: bool = False) -> None:
        """Remember how far a file is shipped, on disk if that works.

        On a full disk it does not. What was acknowledged is then sent again only
        if this process dies as well.
        """
        file.offset, file.done, file.noted = offset, done, False
        self._save(file)

    def _save(self, file: _File) -> None:
        try:
            spool.write_position(file.path, file.offset, file.done)
            file.noted = True
        except OSError as error:
            if str(error) != self._unsaved:
                _log.error("cannot write a position: %s; trying again", error)
            self._unsaved = str(error)

    def _aside(self, file: _File, lines: Sequence[spool.Line]) -> None:
        if not lines:
            return
        folder = self.settings.folder / spool.ASIDE
        folder.mkdir(exist_ok=True, mode=0o700)
        if sum(entry.stat().st_size for entry in folder.iterdir()) > _ASIDE_LIMIT:
            raise _Away(f"{folder} is full: look at what was set aside and remove it")
        with open(folder / (file.path.stem + ".jsonl"), "a", encoding="utf-8") as out:
            for line in lines:
                note = {
                    "event.id": spool.event_id(file.path.stem, line.offset),
                    "reason": line.reason,
                    "line": line.raw.decode("utf-8", "backslashreplace"),
                }
                out.write(json.dumps(note, ensure_ascii=False) + "\n")
                _log.warning("set aside %s: %s", note["event.id"], line.reason)
            out.flush()
            spool.sync_file(out.fileno())
        spool.sync_folder(folder)
        self.status.set_aside += len(lines)

    def _any_live(self) -> bool:
        with contextlib.suppress(OSError):
            return any(spool.is_live(path) for path in self.settings.folder.glob("*" + spool.SUFFIX))
        return False

    def _done(self) -> list[Path]:
        return [file.path for file in self._files.values() if file.done]

    def _show(self) -> None:
        """Write status.json when something changed. It is for people: not durable."""
        backlog = 0
        for path in self.settings.folder.glob("*" + spool.SUFFIX):
            file = self._files.get(path.name)
            with contextlib.suppress(OSError):
                backlog += 0 if file and file.done else path.stat().st_size - (file.offset if file else 0)
        self.status.backlog_bytes = max(0, backlog)
        if self._shown is not None and _same(self._shown, self.status):
            return
        self.status.time = time.time()
        path = self.settings.folder / "status.json"
        with contextlib.suppress(OSError):
            temporary = path.with_suffix(".json.new")
            temporary.write_text(json.dumps(asdict(self.status)) + "\n", encoding="utf-8")
            os.replace(temporary, path)
        self._shown = Status(**asdict(self.status))


def _same(a: Status, b: Status) -> bool:
    return {**asdict(a), "time": 0} == {**asdict(b), "time": 0}


def _record(stem: str, line: spool.Line) -> Optional[dict[str, Any]]:
    """Return the record of a line with its event id, or None when the line is broken."""
    if line.payload is None:
        return None
    try:
        record = json.loads(line.payload)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    identity = {"key": "event.id", "value": {"stringValue": spool.event_id(stem, line.offset)}}
    record.setdefault("attributes", []).append(identity)
    return record


def _because(line: spool.Line, reason: str) -> spool.Line:
    return spool.Line(line.offset, line.end, None, reason, line.raw)


@contextlib.contextmanager
def _gate(folder: Path, mode: int) -> Iterator[None]:
    """Hold the gate, alone or with others, for a block."""
    with open(folder / "watchdog.gate", "a", encoding="ascii") as file:
        fcntl.flock(file, mode)
        yield


def take_lock(folder: Path) -> Optional[IO[str]]:
    """Return the folder's lock, held until it is closed, or None when a watchdog has it."""
    file = open(folder / "watchdog.lock", "a+", encoding="ascii")  # noqa: SIM115 - held open
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


class Supervisor:
    """Sees to it that a folder has a watchdog. May be used by any thread."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._next = 0.0

    def ensure(self, every_s: float = 0.0, *, now: bool = True) -> bool:
        """Start a watchdog when none runs; without now, look at most every so many seconds.

        Returns False, and logs why, when it cannot be started: events are
        durable nevertheless and go out when a watchdog runs again.
        """
        moment = time.monotonic()
        if moment < self._next and not now:
            return True
        self._next = moment + every_s
        if self._process is not None and self._process.poll() is not None:
            self._process = None
        try:
            with _gate(self.settings.folder, fcntl.LOCK_SH):
                lock = take_lock(self.settings.folder)
            if lock is None:
                return True
            lock.close()
            self._process = _spawn(self.settings)
        except OSError as error:
            logging.getLogger("inquest").error("cannot start the watchdog: %s; events wait on disk", error)
            return False
        return True


def _spawn(settings: Settings) -> subprocess.Popen[bytes]:
    here = str(Path(__file__).resolve().parent.parent)
    path = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    # Embedded interpreters name themselves as executable, hence the variable.
    command = [os.environ.get("INQUEST_PYTHON") or sys.executable, "-m", "inquest.watchdog"]
    command += ["--spool", str(settings.folder.resolve()), "--endpoint", settings.endpoint]
    command += ["--interval", str(settings.interval_s), "--linger", str(settings.linger_s)]
    command += ["--keep", str(settings.keep_s), "--max-total", str(settings.max_total)]
    with open(settings.folder / "watchdog.err", "ab") as errors:
        if errors.tell() > _MAX_ERRORS:
            errors.truncate(0)
        return subprocess.Popen(
            command,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            # Away from the application's terminal and process group: what kills it must not kill us.
            start_new_session=True,
        )


def _log_handler(folder: Path) -> logging.Handler:
    try:
        return logging.handlers.RotatingFileHandler(folder / "watchdog.log", maxBytes=1 << 20, backupCount=1)
    except OSError:
        return logging.StreamHandler()


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run a watchdog in the foreground; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="inquest-watchdog", description="Ships a spool folder over OTLP/HTTP."
    )
    parser.add_argument("--spool", type=Path, required=True, help="the folder")
    parser.add_argument("--endpoint", required=True, help="OTLP/HTTP receiver, http://HOST:4318")
    parser.add_argument("--interval", type=float, default=0.2, help="seconds between two looks")
    parser.add_argument(
        "--linger", type=float, default=86400.0, help="seconds to wait for a receiver that is away"
    )
    parser.add_argument("--keep", type=float, default=7 * 86400.0, help="seconds that shipped files are kept")
    parser.add_argument("--max-total", type=int, default=4 << 30, help="bytes that the folder may hold")
    options = parser.parse_args(arguments)
    settings = Settings(
        options.spool, options.endpoint, options.interval, options.linger, options.keep, options.max_total
    )
    try:
        watchdog = Watchdog(settings)
        # Several tries: an application that looks holds it for a moment.
        lock = take_lock(settings.folder)
        for _ in range(5):
            if lock is not None:
                break
            time.sleep(0.1)
            lock = take_lock(settings.folder)
    except (OSError, ValueError) as error:
        print(f"cannot start the watchdog: {error}", file=sys.stderr)
        return 2
    if lock is None:
        return 0
    with lock:
        with contextlib.suppress(OSError):  # on a full disk shipping is what makes room
            # Who has the lock, for a person who looks.
            os.ftruncate(lock.fileno(), 0)
            os.write(lock.fileno(), b"%d\n" % os.getpid())
        handler = _log_handler(settings.folder)
        handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
        _log.addHandler(handler)
        _log.setLevel(logging.INFO)
        _log.propagate = False
        signal.signal(signal.SIGTERM, lambda *_: watchdog.stop())
        signal.signal(signal.SIGINT, lambda *_: watchdog.stop())
        watchdog.run(lock)
        handler.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
