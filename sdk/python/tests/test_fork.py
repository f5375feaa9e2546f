"""Applications that fork after their logger is made: multiprocessing, and servers that fork before they serve."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from capture import Capture

# argv: endpoint, spool. Prints a line for each event whose logger has returned.
BEGIN = """
import multiprocessing, os, sys, threading, time
import inquest
endpoint, folder = sys.argv[1:3]
process = inquest.init("forking", endpoint, folder or None)
log = inquest.EventLogger()
def work(name, count):
    with process.tracer.start_as_current_span(f"work {name}"):
        for n in range(count):
            log.inference(extra={"n": f"{name}-{n}"})
            os.write(1, f"{name}-{n}\\n".encode())
"""

MULTIPROCESSING = """
if __name__ == "__main__":
    work("parent", 3)
    forked = multiprocessing.get_context("fork")
    children = [forked.Process(target=work, args=(str(child), 20)) for child in range(4)]
    for child in children: child.start()
    for child in children: child.join(); assert child.exitcode == 0
    work("end", 3)
"""

# As gunicorn does with preload: the children leave through sys.exit, one is killed, and
# threads of the parent hold whatever locks there are at the moment of the fork.
PREFORK = """
def busy(name):
    n = 0
    while not stop.is_set():
        work(f"{name}.{n}", 5); n += 1
stop = threading.Event()
threads = [threading.Thread(target=busy, args=(f"busy{n}",)) for n in range(3)]
for thread in threads: thread.start()
children = []
for child in range(20):
    pid = os.fork()
    if pid == 0:
        work(f"child{child}", 5)
        if child == 7: os.kill(os.getpid(), 9)
        sys.exit(0)
    children.append(pid)
    time.sleep(0.01)
states = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
stop.set()
for thread in threads: thread.join()
assert states == [-9 if child == 7 else 0 for child in range(20)], states
"""


def run(script: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script, *arguments],
        timeout=20,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("durable", [True, False])
def test_multiprocessing(durable: bool, tmp_path: Path, receiver: Capture) -> None:
    told = run(MULTIPROCESSING, receiver.endpoint, str(tmp_path) if durable else "")
    assert len(told) == 4 * 20 + 6
    receiver.wait(lambda r: len(r.logs) >= len(told))
    assert sorted(event["n"] for event in receiver.events()) == sorted(told)
    names = {f"work {name}" for name in ("parent", "0", "1", "2", "3", "end")}
    receiver.wait(lambda r: {span["name"] for span in r.spans} >= names)
    assert len(receiver.spans) == len(names)


def test_prefork_while_threads_log(tmp_path: Path, receiver: Capture) -> None:
    told = run(PREFORK, receiver.endpoint, str(tmp_path))
    assert len(told) >= 20 * 5
    receiver.wait(lambda r: len(r.logs) >= len(told))
    assert sorted(event["n"] for event in receiver.events()) == sorted(told)


def test_first_event_and_export_import_nothing(tmp_path: Path, receiver: Capture) -> None:
    """A process that is forked while a module is imported waits for that module's lock for ever."""
    script = """
before = set(sys.modules)
work("first", 1)
process.flush()
print(*sorted(set(sys.modules) - before))
assert process.wait_shipped()
"""
    for folder in ("", str(tmp_path)):
        assert run(script, receiver.endpoint, folder) == ["first-0"]
