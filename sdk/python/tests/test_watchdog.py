from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from capture import Capture
from inquest import otlp, spool
from inquest.durable import SpoolWriter
from inquest.watchdog import Settings, Supervisor, Watchdog, take_lock
from test_durable import HEADER


def record(n: int) -> bytes:
    values = {"n": n}
    return otlp.dumps(
        otlp.log_record(time_ns=1, severity=9, severity_text="INFO", body=f"b{n}", values=values)
    ).encode()


def filled(folder: Path, count: int) -> Path:
    writer = SpoolWriter(folder, HEADER)
    for n in range(count):
        writer.append(record(n))
    writer.close()
    return next(folder.glob("*.spool"))


def run(folder: Path, receiver: Capture, **settings: Any) -> Watchdog:
    watchdog = Watchdog(Settings(folder, receiver.endpoint, interval_s=0.02, **settings))
    watchdog.run()
    return watchdog


def sent(receiver: Capture) -> list[int]:
    return [log["attributes"]["n"] for log in receiver.logs]


def test_ships_all_once_and_ends(tmp_path: Path, receiver: Capture) -> None:
    path = filled(tmp_path, 1200)
    assert run(tmp_path, receiver).status.shipped == 1200
    assert sent(receiver) == list(range(1200))
    assert len({log["attributes"]["event.id"] for log in receiver.logs}) == 1200
    assert spool.read_position(path) == (path.stat().st_size, True)
    run(tmp_path, receiver)
    assert len(receiver.logs) == 1200, "shipped again what was acknowledged"


def test_keeps_on_while_the_receiver_is_away(tmp_path: Path, receiver: Capture) -> None:
    filled(tmp_path, 30)
    receiver.answer = lambda n, records: (200, b"{}") if n > 3 else (503 if n < 3 else 401, b"away")
    assert run(tmp_path, receiver).status.shipped == 30
    assert sent(receiver) == list(range(30))


def test_gives_up_after_linger_and_loses_nothing(tmp_path: Path, receiver: Capture) -> None:
    filled(tmp_path, 3)
    receiver.answer = lambda n, records: (503, b"")
    watchdog = run(tmp_path, receiver, linger_s=0.3)
    assert "503" in watchdog.status.last_error
    assert json.loads((tmp_path / "status.json").read_text())["backlog_bytes"] > 0
    receiver.answer = lambda n, records: (200, b"{}")
    run(tmp_path, receiver)
    assert sent(receiver) == [0, 1, 2]


def test_one_bad_record_does_not_hold_the_others(tmp_path: Path, receiver: Capture) -> None:
    filled(tmp_path, 100)
    receiver.answer = lambda n, records: (
        (400, b"I do not like 42") if any(r["attributes"]["n"] == 42 for r in records) else (200, b"{}")
    )
    watchdog = run(tmp_path, receiver)
    assert sorted(sent(receiver)) == [n for n in range(100) if n != 42]
    assert watchdog.status.set_aside == 1
    note = json.loads(next((tmp_path / "aside").iterdir()).read_text())
    assert "I do not like 42" in note["reason"] and '"b42"' in note["line"]


def test_large_batches_are_halved(tmp_path: Path, receiver: Capture) -> None:
    filled(tmp_path, 100)
    receiver.answer = lambda n, records: (413, b"") if len(records) > 10 else (200, b"{}")
    run(tmp_path, receiver)
    assert sent(receiver) == list(range(100))


def test_partial_success_is_kept_aside(tmp_path: Path, receiver: Capture) -> None:
    filled(tmp_path, 5)
    answer = b'{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"too old"}}'
    receiver.answer = lambda n, records: (200, answer)
    watchdog = run(tmp_path, receiver)
    assert (watchdog.status.shipped, watchdog.status.set_aside) == (3, 5)
    assert "rejected 2 of 5: too old" in next((tmp_path / "aside").iterdir()).read_text()


def test_torn_and_broken_lines_are_set_aside(tmp_path: Path, receiver: Capture) -> None:
    path = filled(tmp_path, 10)
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    lines[4] = lines[4].replace(b"b3", b"bX")
    path.write_bytes(b"".join(lines) + b'0badc0de {"half')
    watchdog = run(tmp_path, receiver)
    assert sent(receiver) == [n for n in range(10) if n != 3]
    assert (watchdog.status.torn, watchdog.status.set_aside) == (1, 2)
    text = next((tmp_path / "aside").iterdir()).read_text()
    assert "checksum does not agree" in text and "torn by a crash" in text


def test_file_without_header_is_left_in_place(tmp_path: Path, receiver: Capture) -> None:
    (tmp_path / "x.spool").write_bytes(b"nonsense\n")
    filled(tmp_path, 2)
    run(tmp_path, receiver)
    assert sent(receiver) == [0, 1]
    assert (tmp_path / "x.spool").exists()


def test_crash_after_the_answer_sends_again_with_the_same_id(tmp_path: Path, receiver: Capture) -> None:
    path = filled(tmp_path, 4)
    run(tmp_path, receiver)
    path.with_suffix(".pos").unlink()
    run(tmp_path, receiver)
    ids = [log["attributes"]["event.id"] for log in receiver.logs]
    assert len(ids) == 8 and ids[:4] == ids[4:]


def test_full_disk_does_not_send_twice(
    tmp_path: Path, receiver: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(tmp_path, 5)
    real, failures = spool.write_position, iter(range(4))

    def full(path: Path, offset: int, done: bool) -> None:
        if next(failures, None) is not None:
            raise OSError(28, "No space left on device")
        real(path, offset, done)

    monkeypatch.setattr(spool, "write_position", full)
    run(tmp_path, receiver)
    assert sent(receiver) == list(range(5))
    assert spool.read_position(path) == (path.stat().st_size, True)


def test_retention_takes_only_what_is_shipped(tmp_path: Path, receiver: Capture) -> None:
    path = filled(tmp_path, 2)
    old = time.time() - 8 * 86400
    os.utime(path, (old, old))
    receiver.answer = lambda n, records: (503, b"")
    run(tmp_path, receiver, linger_s=0.1)
    assert path.exists(), "removed before it was shipped"
    receiver.answer = lambda n, records: (200, b"{}")
    run(tmp_path, receiver)
    assert sent(receiver) == [0, 1]
    assert not path.exists() and not path.with_suffix(".pos").exists()


def test_one_watchdog_a_folder(tmp_path: Path, receiver: Capture) -> None:
    writer = SpoolWriter(tmp_path, HEADER)
    supervisor = Supervisor(Settings(tmp_path, receiver.endpoint, interval_s=0.05))
    assert supervisor.ensure()
    until = time.monotonic() + 10
    while (lock := take_lock(tmp_path)) is not None and time.monotonic() < until:
        lock.close()
        time.sleep(0.05)
    command = [
        sys.executable,
        "-m",
        "inquest.watchdog",
        "--spool",
        str(tmp_path),
        "--endpoint",
        receiver.endpoint,
    ]
    assert subprocess.run(command, timeout=10, check=False).returncode == 0, "a second one stayed"
    writer.append(record(7))
    receiver.wait(lambda r: sent(r) == [7])
    writer.close()
    process = supervisor._process
    assert process is not None and process.wait(10) == 0, "did not end with its application"
    assert not (tmp_path / "watchdog.err").read_bytes()


def test_killed_watchdog_is_replaced(tmp_path: Path, receiver: Capture) -> None:
    writer = SpoolWriter(tmp_path, HEADER)
    supervisor = Supervisor(Settings(tmp_path, receiver.endpoint, interval_s=0.05))
    supervisor.ensure()
    writer.append(record(1))
    receiver.wait(lambda r: 1 in sent(r))
    first = supervisor._process
    assert first is not None
    first.kill()
    first.wait(10)
    writer.append(record(2))
    supervisor.ensure()
    receiver.wait(lambda r: 2 in sent(r))
    writer.close()
    assert supervisor._process is not None and supervisor._process.wait(10) == 0


def test_wrong_endpoint_is_told(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "inquest.watchdog", "--spool", str(tmp_path), "--endpoint", "nonsense"]
    done = subprocess.run(command, timeout=10, check=False, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "want http://HOST:PORT" in done.stderr
