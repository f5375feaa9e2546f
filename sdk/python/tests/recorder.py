"""Runs inquest itself, for tests of the whole way: from an application to what a person reads."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from running import free_port, started


class Recorder:
    """A running `inquest serve` with an empty folder, ended with the stack.

    The environment variable INQUEST names the binary; test.sh builds and sets it.
    """

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.binary = os.environ.get("INQUEST") or ""
        if not self.binary:
            pytest.skip("INQUEST does not name the binary of inquest: run test.sh where Go is installed")
        self.begin = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        http, api = free_port(), free_port()
        self.endpoint, self.api = f"http://127.0.0.1:{http}", f"http://127.0.0.1:{api}"
        settings = {
            "receivers::otlp::protocols::http::endpoint": f"127.0.0.1:{http}",
            "receivers::otlp::protocols::grpc::endpoint": f"127.0.0.1:{free_port()}",
            "extensions::inquest::api::endpoint": f"127.0.0.1:{api}",
            "extensions::inquest::disk::min_free": "64MiB",
            "service::telemetry::metrics::level": "none",
            "service::telemetry::logs::level": "error",
        }
        command = [self.binary, "serve", "--data", str(folder / "inquest")]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        self.process = started(stack, folder, "inquest", command)
        until = time.monotonic() + 30
        while not self._healthy():
            assert time.monotonic() < until and self.process.poll() is None, "inquest does not start"
            time.sleep(0.05)

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(self.api + "/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def command(self, *arguments: str) -> str:
        """Run a command of inquest against this server and return what it prints."""
        command = [self.binary, *arguments, "--server", self.api]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def get(self, path: str) -> Any:
        """Return the data of an answer of the API."""
        with urllib.request.urlopen(self.api + path, timeout=60) as answer:
            return json.loads(answer.read())["data"]

    def query(self, logsql: str) -> list[dict[str, Any]]:
        """Return the rows that a query finds."""
        lines = self.command("logs", logsql, "--from", "", "--limit", "100000", "--output", "json")
        return [json.loads(line) for line in lines.splitlines() if line]

    def count(self, logsql: str) -> int:
        """Return how many records a filter finds."""
        return int(self.query(logsql + " | stats count() n")[0]["n"])

    def wait(self, logsql: str, count: int, timeout_s: float = 60.0) -> None:
        """Wait until a filter finds at least count records."""
        until = time.monotonic() + timeout_s
        while (found := self.count(logsql)) < count:
            assert time.monotonic() < until, f"{found} of {count} records arrived: {logsql}"
            time.sleep(0.2)
