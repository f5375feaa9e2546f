from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from inquest import spool
from inquest.durable import EventTooLargeError, Limits, SpoolError, SpoolFullError, SpoolWriter

HEADER = {"resource": {}, "scope": {"name": "t"}}


def numbers(folder: Path) -> list[int]:
    found = []
    for path in sorted(folder.glob("*.spool")):
        _, begin = spool.read_header(path)
        for line in spool.read_lines(path, begin, 1 << 30):
            assert line.payload is not None, line.reason
            found.append(json.loads(line.payload)["n"])
    return found


def payload(n: int, size: int = 0) -> bytes:
    return json.dumps({"n": n, "pad": "x" * size}).encode()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "line has no checksum"),
        (b"{}", "line has no checksum"),
        (b"zzzzzzzz {}", "line has no checksum"),
        (b"00000000 {}", "checksum does not agree"),
        (spool.encode_line(b'{"a":1}')[:-2], "checksum does not agree"),
    ],
)
def test_broken_lines(line: bytes, reason: str) -> None:
    with pytest.raises(spool.LineError, match=reason):
        spool.decode_line(line)


def test_line_round_trip() -> None:
    for text in (b"{}", '{"a":"é"}'.encode(), b"x" * 5000):
        assert spool.decode_line(spool.encode_line(text)[:-1]) == text


def test_ids_tell_where_the_line_is(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, HEADER)
    ids = [writer.append(payload(n)) for n in range(5)]
    writer.close()
    path = next(tmp_path.glob("*.spool"))
    _, begin = spool.read_header(path)
    assert ids == [spool.event_id(path.stem, line.offset) for line in spool.read_lines(path, begin, 1 << 20)]


def test_group_commit(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, HEADER)

    def work(first: int) -> None:
        for n in range(first, first + 50):
            writer.append(payload(n))

    threads = [threading.Thread(target=work, args=(50 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    assert sorted(numbers(tmp_path)) == list(range(400))
    assert writer.counters.events == 400
    assert writer.counters.syncs < 400, "no two threads shared an fsync"


def test_files_roll_and_order_holds(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, HEADER, Limits(max_file=2000))
    for n in range(40):
        writer.append(payload(n, 200))
    writer.close()
    assert numbers(tmp_path) == list(range(40))
    assert len(list(tmp_path.glob("*.spool"))) > 3
    assert max(path.stat().st_size for path in tmp_path.glob("*.spool")) <= 2000


def test_live_while_open(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, HEADER)
    path = next(tmp_path.glob("*.spool"))
    assert spool.is_live(path)
    writer.close()
    assert not spool.is_live(path)
    with pytest.raises(SpoolError, match="closed"):
        writer.append(payload(1))


def test_limits_refuse_and_count(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, HEADER, Limits(max_line=500, max_total=3000))
    with pytest.raises(EventTooLargeError, match="the limit is 500"):
        writer.append(payload(0, 1000))
    with pytest.raises(SpoolFullError, match="the limit is 3000"):
        for n in range(100):
            writer.append(payload(n, 100))
    kept = writer.counters.events
    writer.close()
    assert numbers(tmp_path) == list(range(kept))
    assert (writer.counters.refused_large, writer.counters.refused_full) == (1, 1)


def test_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match="cannot use spool"):
        SpoolWriter(tmp_path / "file", HEADER)


def test_full_disk_tears_nothing(tmp_path: Path) -> None:
    # The kernel refuses writes past this size in the middle of a line, as a full disk does.
    script = f"""
import resource, signal, sys
from pathlib import Path
from inquest.durable import SpoolFullError, SpoolWriter
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_durable import HEADER, payload
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = SpoolWriter(Path({str(tmp_path)!r}), HEADER)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
done = 0
try:
    for n in range(1000):
        writer.append(payload(n, 100)); done += 1
except SpoolFullError as error:
    assert "free space" in str(error), error
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
writer.append(payload(done))
assert writer.counters.refused_full == 1, writer.counters
print(done)
"""
    done = int(subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE).stdout)
    assert 0 < done < 20
    assert numbers(tmp_path) == list(range(done + 1))
    assert resource.RLIM_INFINITY  # the limit was the child's alone


def test_failed_sync_abandons_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SpoolWriter(tmp_path, HEADER)
    first = next(tmp_path.glob("*.spool"))
    writer.append(payload(0))

    def broken(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(spool, "sync_file", broken)
        with pytest.raises(SpoolError, match="Input/output error"):
            writer.append(payload(1))
    size = first.stat().st_size
    writer.append(payload(2))
    writer.close()
    assert first.stat().st_size == size, "went on in a file whose state is unknown"
    assert writer.counters.failed == 1
    assert 2 in numbers(tmp_path)


def test_forked_child_has_its_own_file(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, HEADER)
    writer.append(payload(0))
    pid = os.fork()
    if pid == 0:
        try:
            writer.append(payload(1))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    writer.append(payload(2))
    live = [spool.is_live(path) for path in sorted(tmp_path.glob("*.spool"))]
    assert live == [True, False]
    writer.close()
    assert sorted(numbers(tmp_path)) == [0, 1, 2]
