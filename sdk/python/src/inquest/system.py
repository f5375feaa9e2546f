"""System context of an event: the accelerator's memory and load as NVML tells them."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from typing import Any, Optional

_FRESH_S = 1.0


@dataclass(frozen=True)
class Sample:
    """One look at the device: mebibytes in use, percent busy, its name ("cuda:0" or "cpu")."""

    gpu_memory_used_mb: float = 0.0
    gpu_util_percent: float = 0.0
    device: str = "cpu"


class Sampler:
    """Samples one device, at most once a second. May be used by any thread.

    Without NVML, or without a GPU, the sample is zero and the device "cpu".
    index is the process's own device number, as CUDA counts it.
    """

    def __init__(self, index: int = 0) -> None:
        self._index = index
        self._lock = threading.Lock()
        with contextlib.suppress(Exception):
            # Now, in one thread: a fork in the middle of an import leaves its lock held.
            import pynvml  # noqa: F401
        self._pid = 0
        self._nvml: Any = None
        self._handle: Any = None
        self._sample = Sample()
        self._taken = float("-inf")

    def sample(self) -> Sample:
        """Return a sample that is at most one second old. Never raises."""
        now = time.monotonic()
        if now - self._taken < _FRESH_S and self._pid == os.getpid():
            return self._sample
        # A busy lock means that another thread is sampling: the last one will do.
        if not self._lock.acquire(blocking=False):
            return self._sample
        try:
            if self._pid != os.getpid():
                # NVML does not survive a fork.
                self._pid = os.getpid()
                self._open()
            self._sample, self._taken = self._look(), now
        finally:
            self._lock.release()
        return self._sample

    def _open(self) -> None:
        self._handle = None
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml, self._handle = pynvml, _handle(pynvml, self._index)
        except Exception:  # no module, no driver, no device: all mean "cpu"
            self._handle = None

    def _look(self) -> Sample:
        if self._handle is None:
            return Sample()
        try:
            used = self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used / (1 << 20)
            busy = self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu
        except Exception:  # the device fell off the bus: the next sample tries again
            self._pid = 0
            return Sample()
        return Sample(round(float(used), 3), min(100.0, max(0.0, float(busy))), f"cuda:{self._index}")


def _handle(nvml: Any, index: int) -> Any:
    """Return NVML's handle of the process's device: CUDA numbers only the visible ones."""
    name = _visible(index)
    if name is None:
        return nvml.nvmlDeviceGetHandleByIndex(index)
    if name.isdigit():
        return nvml.nvmlDeviceGetHandleByIndex(int(name))
    return nvml.nvmlDeviceGetHandleByUUID(name)


def _visible(index: int) -> Optional[str]:
    names = os.environ.get("CUDA_VISIBLE_DEVICES")
    if names is None:
        return None
    return names.split(",")[index].strip()
