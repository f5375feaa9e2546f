"""What goes from a spool folder, and when: only what is shipped, by age or for want of room."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from inquest import spool

_EVERY_S = 5.0
_STALE_S = 60.0
_FREE = 64 << 20  # bytes on the disk below which shipped files go early


class Retention:
    """Removes shipped files of one folder. Not for several threads at once."""

    def __init__(self, folder: Path, keep_s: float, max_total: int) -> None:
        self._folder = folder
        self._keep_s = keep_s
        self._max_total = max_total
        self._next = 0.0

    def apply(self, shipped: Sequence[Path]) -> None:
        """Remove shipped files that are older than keep_s, and the oldest ones when room is short.

        A file that is not shipped is never removed, however old.
        """
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EVERY_S
        with contextlib.suppress(OSError):
            kept = [path for path in sorted(shipped) if not self._expire(path)]
            for path in kept:
                if not self._short_of_room():
                    break
                _remove(path)
            self._sweep()

    def _expire(self, path: Path) -> bool:
        try:
            old = time.time() - path.stat().st_mtime > self._keep_s
        except FileNotFoundError:
            return True
        if old:
            _remove(path)
        return old

    def _short_of_room(self) -> bool:
        total = sum(path.stat().st_size for path in self._folder.glob("*" + spool.SUFFIX))
        disk = os.statvfs(self._folder)
        return total > self._max_total * 0.8 or disk.f_bavail * disk.f_frsize < _FREE

    def _sweep(self) -> None:
        """Remove what a crash left half made: files without a name yet, positions without a file."""
        for path in self._folder.glob("*.tmp"):
            if time.time() - path.stat().st_mtime > _STALE_S and not spool.is_live(path):
                path.unlink()
        for path in self._folder.glob("*.pos"):
            if not path.with_suffix(spool.SUFFIX).exists():
                path.unlink()


def _remove(path: Path) -> None:
    # The position last: a crash between the two leaves no file to send again.
    path.unlink(missing_ok=True)
    path.with_suffix(".pos").unlink(missing_ok=True)
