"""Runs the service of shop.py as processes of their own, for tests."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Optional

HERE = Path(__file__).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started(
    stack: ExitStack, folder: Path, name: str, command: list[str], **env: str
) -> subprocess.Popen[bytes]:
    """Start a process that is ended, first politely, when the test ends."""
    log = stack.enter_context(open(folder / f"{name}.out", "wb"))  # noqa: SIM115 (the stack closes it)
    child = subprocess.Popen(command, cwd=HERE, env={**os.environ, **env}, stdout=log, stderr=log)
    stack.callback(end, child)
    return child


def end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(15)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def wait_port(port: int, child: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until and child.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the server did not start")


def ask(port: int, number: int, request_id: Optional[str]) -> str:
    headers = {"x-request-id": request_id} if request_id else {}
    url = f"http://127.0.0.1:{port}/ask/{number}?text=hello+world"
    with urllib.request.urlopen(
        urllib.request.Request(url, method="POST", headers=headers), timeout=20
    ) as answer:
        assert json.loads(answer.read()) == {"number": number}
        return str(answer.headers["x-request-id"])


def serve(
    stack: ExitStack,
    tmp_path: Path,
    env: dict[str, str],
    worker: dict[str, str],
    count: int,
    application: str = "shop:queue",
    at_once: int = 1,
) -> dict[str, str]:
    """Run web and worker, send requests, and return number → request id as the responses told it."""
    port = free_port()
    command = [sys.executable, "-m", "celery", "-A", application, "worker", "-c", "2", "-l", "INFO"]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    started(stack, tmp_path, "worker", command, **{**env, "SERVICE": "worker", **worker})
    command = [sys.executable, "-m", "uvicorn", "shop:web", "--port", str(port), "--log-level", "warning"]
    wait_port(port, started(stack, tmp_path, "web", command, **env, SERVICE="web"))
    sent = [f"order-{number}" if number % 2 else None for number in range(count)]
    with ThreadPoolExecutor(at_once) as clients:
        answers = list(clients.map(ask, [port] * count, range(count), sent))
    assert all(answer == (told or answer) for answer, told in zip(answers, sent))
    return {str(number): answer for number, answer in enumerate(answers)}
