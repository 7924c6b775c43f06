"""The standard library's logging through OpenTelemetry's handler: a line inside a run is held with it."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator

import pytest
from opentelemetry.sdk._logs import LoggingHandler
from opentelemetry.trace import use_span

from tests.logs.logged import Logged


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    logger = logging.getLogger("tests.logs")
    logger.setLevel(logging.DEBUG)
    yield logger
    for handler in [*logger.handlers]:
        logger.removeHandler(handler)


def handled(it: Logged) -> logging.Handler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer SDKs have it in a package of its own
        return LoggingHandler(logger_provider=it.loggers)


def test_lines_of_a_tool_leave_with_the_run_and_others_at_once(log: logging.Logger) -> None:
    it = Logged()
    log.addHandler(handled(it))
    with it.open("agent") as agent:
        with use_span(it.start("tool", under=agent), end_on_exit=True):
            log.info("in the tool: %s", 42)
        log.info("outside")
        assert it.left == ["outside"]
    assert it.left == ["outside", "in the tool: 42"]
    record = it.runs[0].records[0]
    assert (record.severity_text, record.body) == ("INFO", "in the tool: 42")


def test_lines_of_a_refused_run_stay(log: logging.Logger) -> None:
    it = Logged()
    log.addHandler(handled(it))
    with it.open("agent") as agent, use_span(it.start("tool", under=agent), end_on_exit=False):
        log.warning("leaked")
    log.info("after")
    assert it.left == ["after"]
    assert it.logs.withheld == 1


def test_an_exception_is_logged_with_its_run(log: logging.Logger) -> None:
    it = Logged()
    log.addHandler(handled(it))
    with it.open("agent") as agent, use_span(agent):
        try:
            int("no number")
        except ValueError:
            log.exception("it failed")
    assert it.left == ["it failed"]
    assert it.runs[0].records[0].attributes["exception.type"] == "ValueError"


def test_what_the_gate_itself_logs_goes_the_same_way_and_comes_to_an_end() -> None:
    it = Logged(max_held_bytes=4096)
    handler = handled(it)
    logging.getLogger("spangate").addHandler(handler)
    try:
        with it.open("agent") as agent, use_span(agent):
            for _ in range(40):
                logging.getLogger("spangate").warning("x" * 100_000)
        it.loggers.force_flush()
    finally:
        logging.getLogger("spangate").removeHandler(handler)
    assert it.logs.losses
    assert set(it.logs.losses) <= {"overload", "backlog"}
