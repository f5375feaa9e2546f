"""Kills a real application between, and in the middle of, its log calls."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from capture import Capture
from inquest import spool
from inquest.watchdog import take_lock
from recorder import Recorder

ROUNDS = 200 if os.environ.get("INQUEST_LONG") else 20

# Logs as fast as it can from several threads, and tells each number only once
# the logger has returned. A pipe keeps what a killed process wrote.
APPLICATION = """
import os, sys, threading
import inquest
inquest.init("victim", sys.argv[1], sys.argv[2])
log = inquest.EventLogger()
def work(name):
    n = 0
    while True:
        id = log.inference(extra={"n": f"{sys.argv[3]}-{name}-{n}"})
        os.write(1, f"{sys.argv[3]}-{name}-{n} {id}\\n".encode())
        n += 1
for name in range(3):
    threading.Thread(target=work, args=(name,), daemon=True).start()
work(3)
"""


def kill_once(endpoint: str, folder: Path, number: int, rng: random.Random) -> list[str]:
    """Start the application, kill it at a random moment, and return the lines it told."""
    command = [sys.executable, "-c", APPLICATION, endpoint, str(folder), str(number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline()]
        time.sleep(rng.uniform(0, 0.15))
        child.send_signal(signal.SIGKILL)
        lines += child.stdout.readlines()
    assert child.returncode == -signal.SIGKILL
    # The last line may be torn in the pipe only if it is longer than the pipe's atomic size: it is not.
    return [line.strip() for line in lines if line.endswith("\n")]


def wait_for_watchdog(folder: Path) -> None:
    """Wait until the watchdog has shipped all and gone."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if all(spool.read_position(path)[1] for path in folder.glob("*.spool")):
            lock = take_lock(folder)
            if lock is not None:
                lock.close()
                return
        time.sleep(0.05)
    pytest.fail("the watchdog did not end")


def test_no_event_is_lost_that_the_logger_returned_from(tmp_path: Path, receiver: Capture) -> None:
    rng = random.Random(1)
    # Now and then the receiver is away, so that crashes fall into retries too.
    receiver.answer = lambda n, records: (503, b"") if n % 7 == 0 else (200, b"{}")
    told: list[str] = []
    for number in range(ROUNDS):
        told += kill_once(receiver.endpoint, tmp_path, number, rng)
    wait_for_watchdog(tmp_path)
    got: dict[str, str] = {}
    for log, event in zip(receiver.logs, receiver.events()):
        identity = log["attributes"]["event.id"]
        assert got.setdefault(event["n"], identity) == identity, "one event has two ids"
    lost = [line for line in told if got.get(line.split()[0]) != line.split()[1]]
    assert len(told) > ROUNDS
    assert not lost, f"{len(lost)} of {len(told)} lost"
    print(f"{ROUNDS} kills, {len(told)} events told, {len(receiver.logs)} received, 0 lost")


def test_killed_watchdog_loses_nothing(tmp_path: Path, receiver: Capture) -> None:
    """Kill application and watchdog together; the next application's watchdog saves the rest."""
    receiver.answer = lambda n, records: (503, b"")
    told = kill_once(receiver.endpoint, tmp_path, 0, random.Random(2))
    os.kill(int(watchdog_pid(tmp_path)), signal.SIGKILL)
    receiver.answer = lambda n, records: (200, b"{}")
    told += kill_once(receiver.endpoint, tmp_path, 1, random.Random(3))
    wait_for_watchdog(tmp_path)
    got = {event["n"] for event in receiver.events()}
    assert not [line for line in told if line.split()[0] not in got]


def watchdog_pid(folder: Path) -> str:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        text = (folder / "watchdog.lock").read_text()
        if text:
            return text
        time.sleep(0.05)
    raise AssertionError("no watchdog")


def test_inquest_has_every_event_once(tmp_path: Path, recorder: Recorder) -> None:
    """The whole way: what a killed application's logger returned from is stored, and none of it twice."""
    begin, rng, told = time.monotonic(), random.Random(4), []
    for number in range(ROUNDS):
        told += kill_once(recorder.endpoint, tmp_path / "spool", number, rng)
    wait_for_watchdog(tmp_path / "spool")
    rows = recorder.query('{record.type="log"} "ai.n":* | fields "event.id", "ai.n"')
    stored = Counter(row["event.id"] for row in rows)
    numbers = Counter(row["ai.n"] for row in rows)
    twice = [id for id, count in (*stored.items(), *numbers.items()) if count > 1]
    lost = [line for line in told if line.split()[1] not in stored or line.split()[0] not in numbers]
    print(
        f"{ROUNDS} kills, {len(told)} events returned, {len(rows)} stored, {len(lost)} lost, "
        f"{len(twice)} twice, {time.monotonic() - begin:.0f} s"
    )
    assert len(told) > ROUNDS
    assert not lost, f"{len(lost)} of {len(told)} lost"
    assert not twice, f"{len(twice)} of {len(rows)} stored twice"
    assert not recorder.get("/api/v1/deadletters/counts")
