from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import inquest
from capture import Capture
from inquest.logging import Handler, install


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("shop")
    yield logger
    for handler in list(logger.handlers):
        logger.removeHandler(handler)


@pytest.mark.parametrize("durable", [True, False])
def test_records_carry_all_ids(
    durable: bool, tmp_path: Path, receiver: Capture, process: None, logger: logging.Logger
) -> None:
    running = inquest.init("s", receiver.endpoint, str(tmp_path) if durable else None)
    handler = install(logger)
    assert install(logger) is handler
    with inquest.request("r-1", user_id="u"), running.tracer.start_as_current_span("x") as span:
        logger.info("sold %d", 3, extra={"colour": "red", "odd": object})
        try:
            raise KeyError("gone")
        except KeyError:
            logger.exception("failed")
        logger.debug("not taken")
    assert running.wait_shipped()
    receiver.wait(lambda r: len(r.logs) >= 2)
    info, error = receiver.logs
    assert (info["body"], info["severityText"], info["attributes"]["colour"]) == ("sold 3", "INFO", "red")
    assert error["attributes"]["exception.type"] == "builtins.KeyError"
    assert "KeyError: 'gone'" in error["attributes"]["exception.stacktrace"]
    for record in (info, error):
        assert record["attributes"]["request.id"] == "r-1"
        assert record["attributes"]["user.id"] == "u"
        assert record["traceId"] == f"{span.get_span_context().trace_id:032x}"
        assert record["spanId"] == f"{span.get_span_context().span_id:016x}"
    assert running.counters.syncs == (1 if durable else 0), "only errors wait for the disk"


def test_before_init_nothing_happens(logger: logging.Logger) -> None:
    logger.addHandler(Handler())
    logger.error("no one listens")
