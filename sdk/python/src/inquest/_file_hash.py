"""sha256 of model files: bounded in rate, cached, aware of changes while it reads."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

__all__ = ["FileDigest", "HashInterrupted", "digest_path"]

_BLOCK = 1 << 20
_MAX_FILES = 10_000
_CACHE_SIZE = 4096


class HashInterrupted(Exception):
    """Hashing was asked to stop before it was done."""


@dataclass(frozen=True)
class FileDigest:
    """The hash of what a path names."""

    sha256: str
    """Hex. Of a directory: of the lines ``<sha256 of the file>  <relative path>\\n``, sorted by path."""
    kind: str
    """``file`` or ``tree``."""
    size: int
    """Bytes."""
    files: int
    changed: bool
    """A file changed while it was read, so the hash is of a mixture."""


_Key = tuple[str, int, int, int, int, int]
_cache: OrderedDict[_Key, str] = OrderedDict()
_cache_lock = threading.Lock()


class _Pace:
    """Keeps reading below a number of bytes a second, and stops when told."""

    def __init__(self, bytes_per_second: Optional[float], stop: Optional[threading.Event]) -> None:
        self._rate = bytes_per_second
        self._stop = stop
        self._start = time.monotonic()
        self._bytes = 0

    def step(self, count: int) -> None:
        self._bytes += count
        wait = 0.0
        if self._rate:
            wait = self._start + self._bytes / self._rate - time.monotonic()
        if self._stop is not None:
            if self._stop.wait(max(0.0, wait)) if wait > 0 else self._stop.is_set():
                raise HashInterrupted
        elif wait > 0:
            time.sleep(wait)


def digest_path(
    path: Path, *, bytes_per_second: Optional[float] = None, stop: Optional[threading.Event] = None
) -> FileDigest:
    """Return the hash of a file, or of all regular files below a directory.

    Results are kept for the life of the process and used again while a file's
    inode, size and times stay the same. Links are followed to files, not to
    directories. Safe for concurrent use.

    Raises:
        OSError: a file cannot be read.
        ValueError: the directory has more than 10,000 files.
        HashInterrupted: ``stop`` was set.
    """
    pace = _Pace(bytes_per_second, stop)
    path = Path(os.path.realpath(path))
    if path.is_file():
        digest, size, changed = _digest_file(path, pace)
        return FileDigest(digest, "file", size, 1, changed)
    if not path.is_dir():
        raise FileNotFoundError(f"cannot hash {path}: it is neither a file nor a directory")
    names: list[str] = []
    for folder, folders, files in os.walk(path):
        folders.sort()
        for name in files:
            full = Path(folder) / name
            if full.is_file():
                names.append(full.relative_to(path).as_posix())
        if len(names) > _MAX_FILES:
            raise ValueError(f"cannot hash {path}: more than {_MAX_FILES} files; name the model's own folder")
    tree, total, any_changed = hashlib.sha256(), 0, False
    for relative in sorted(names):
        digest, size, changed = _digest_file(path / relative, pace)
        tree.update(f"{digest}  {relative}\n".encode("utf-8", "surrogateescape"))
        total += size
        any_changed = any_changed or changed
    return FileDigest(tree.hexdigest(), "tree", total, len(names), any_changed)


def _key(path: Path, found: os.stat_result) -> _Key:
    return (str(path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _digest_file(path: Path, pace: _Pace) -> tuple[str, int, bool]:
    with path.open("rb", buffering=0) as file:
        before = os.fstat(file.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise OSError(f"cannot hash {path}: not a regular file")
        key = _key(path, before)
        with _cache_lock:
            known = _cache.get(key)
            if known is not None:
                _cache.move_to_end(key)
                return known, before.st_size, False
        digest = hashlib.sha256()
        buffer = bytearray(_BLOCK)
        view = memoryview(buffer)
        while True:
            count = file.readinto(buffer)
            if not count:
                break
            digest.update(view[:count])
            pace.step(count)
        after = os.fstat(file.fileno())
    changed = _key(path, after) != key
    result = digest.hexdigest()
    if not changed:
        with _cache_lock:
            _cache[key] = result
            while len(_cache) > _CACHE_SIZE:
                _cache.popitem(last=False)
    return result, after.st_size, changed
