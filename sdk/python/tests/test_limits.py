"""What the system refuses: room on the disk, a folder to write to, threads. Each is told, and nothing is lost."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from capture import Capture

IN_ROOM = """
mount -t tmpfs -o size=1m{options} tmpfs "$1" || exit 77
shift
exec "$@"
"""


def run(script: str, *arguments: str, room: str = "", options: str = "") -> subprocess.CompletedProcess[str]:
    """Run a script, if asked with a file system of one mebibyte on a folder that only it sees."""
    command = [sys.executable, "-c", script, *arguments]
    if room:
        if not shutil.which("unshare"):
            pytest.skip("needs unshare")
        unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c", IN_ROOM.format(options=options), "sh"]
        command = [*unshare, room, *command]
    done = subprocess.run(command, timeout=60, check=False, capture_output=True, text=True)
    if room and (done.returncode == 77 or "unshare failed" in done.stderr):
        pytest.skip(f"cannot mount a small file system here: {done.stderr}")
    return done


# Logs until the disk is full, then until there is room again: a full disk holds
# nothing but what was shipped, and a file that a person may remove.
FILL = """
import os, sys, threading, time
from pathlib import Path
import inquest
endpoint, room, free = sys.argv[1:4]
other = Path(room, "other")
other.write_bytes(bytes(300_000))
process = inquest.init("full", endpoint, room + "/spool")
log = inquest.EventLogger()
full = threading.Event()
def work(name):
    for n in range(1000):
        try:
            log.inference(extra={"n": f"{name}-{n}", "pad": "x" * 2000})
            os.write(1, f"{name}-{n}\\n".encode())
        except inquest.SpoolFullError as error:
            assert "No space left on device; free space on the disk" in str(error), error
            return full.set()
threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert full.is_set() and process.counters.refused_full >= 1
if free == "free": other.unlink()
until = time.monotonic() + 30
while True:
    try:
        log.inference(extra={"n": "last"})
        break
    except inquest.SpoolFullError:
        assert time.monotonic() < until, "there is no room again"
        time.sleep(0.1)
os.write(1, b"last\\n")
assert process.wait_shipped(30)
"""


@pytest.mark.parametrize("free", ["free", "keep"])
def test_full_disk(free: str, tmp_path: Path, receiver: Capture) -> None:
    """With free a person makes room; otherwise shipping alone makes it."""
    done = run(FILL, receiver.endpoint, str(tmp_path), free, room=str(tmp_path))
    assert done.returncode == 0, done.stderr
    told = done.stdout.split()
    assert len(told) > 50
    receiver.wait(lambda r: len(r.logs) >= len(told))
    got = Counter(event["n"] for event in receiver.events())
    assert got == Counter(told)


def test_disk_that_is_full_already(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
import inquest
try:
    Path(sys.argv[1], "other").write_bytes(bytes(2_000_000))
except OSError:
    pass
inquest.init("full", "http://127.0.0.1:1", sys.argv[1] + "/spool")
"""
    done = run(script, str(tmp_path), room=str(tmp_path))
    assert "SpoolFullError" in done.stderr and f"cannot use spool {tmp_path}/spool: No space" in done.stderr


def test_read_only_file_system(tmp_path: Path) -> None:
    script = "import inquest, sys; inquest.init('ro', 'http://127.0.0.1:1', sys.argv[1])"
    for folder in (tmp_path, tmp_path / "new"):
        done = run(script, str(folder), room=str(tmp_path), options=",ro")
        assert done.returncode == 1
        assert f"cannot use spool {folder}: Read-only file system" in done.stderr


# No thread can be started: not at first, not later, not in a child.
THREADS = """
import os, sys, threading
import inquest
import inquest.runtime
start = threading.Thread.start
def refuse(thread): raise RuntimeError("can't start new thread")
endpoint, folder = sys.argv[1:3]
threading.Thread.start = refuse
try:
    inquest.init("threads", endpoint, folder, threads=False)
except RuntimeError as error:
    assert "cannot start inquest: can't start new thread" in str(error) and "ulimit -u" in str(error), error
else:
    raise AssertionError("started")
threading.Thread.start = start
process = inquest.init("threads", endpoint, folder, threads=False)
log = inquest.EventLogger()
threading.Thread.start = refuse
def work(name):
    with process.tracer.start_as_current_span(name):
        log.inference(extra={"n": name})
        os.write(1, name.encode() + b"\\n")
work("parent")
pid = os.fork()
work("child" if pid == 0 else "again")
if pid:
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert process.flush()
"""


def test_no_more_threads(tmp_path: Path, receiver: Capture) -> None:
    done = run(THREADS, receiver.endpoint, str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["again", "child", "parent"]
    assert "cannot send spans of process" in done.stderr
    receiver.wait(lambda r: len(r.logs) >= 3)
    assert sorted(event["n"] for event in receiver.events()) == ["again", "child", "parent"]
    assert [span["name"] for span in receiver.spans] == ["parent", "again"]
