from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from capture import Capture
from inquest import context as ctx
from inquest import runtime

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
