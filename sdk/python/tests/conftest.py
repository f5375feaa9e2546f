from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from capture import Capture
from inquest import context as ctx
from inquest import runtime
from recorder import Recorder
from running import free_port, started, wait_port

for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME", "INQUEST_SPOOL"):
    os.environ.pop(name, None)

SCHEMA = Path(__file__).parents[3] / "schema" / "ai-event.schema.json"


@pytest.fixture
def receiver() -> Iterator[Capture]:
    capture = Capture()
    yield capture
    capture.close()


@pytest.fixture
def process() -> Iterator[None]:
    """Clean up after a test that calls init()."""
    yield
    runtime.shutdown()
    ctx.uninstrument()


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    """A running inquest of its own."""
    with ExitStack() as stack:
        yield Recorder(stack, tmp_path)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        if shutil.which("redis-server"):
            port = free_port()
            command = [
                "redis-server",
                "--port",
                str(port),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--dir",
                str(tmp_path),
            ]
            wait_port(port, started(stack, tmp_path, "redis", command))
            yield {"BROKER": f"redis://127.0.0.1:{port}/0"}
        else:
            (tmp_path / "queue").mkdir()
            yield {"BROKER": "filesystem://", "BROKER_FOLDER": str(tmp_path / "queue")}


@pytest.fixture(scope="session")
def validate() -> Callable[[dict[str, Any]], None]:
    """Check an event against the public schema."""
    if not SCHEMA.exists():
        pytest.skip(f"{SCHEMA} is not here: run from a checkout")
    import jsonschema

    validator = jsonschema.Draft202012Validator(
        json.loads(SCHEMA.read_text()), format_checker=jsonschema.FormatChecker()
    )
    return lambda event: validator.validate(event)
