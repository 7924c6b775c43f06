"""Why an exporter of the SDK did not take spans: heard from what it logs, since it answers with ``FAILURE`` alone.

Whether a refusal passes decides what becomes of a run: a collector that restarts is waited for, credentials that are
wrong are not. What is heard here is not logged again for each try; ``spangate`` says once what is the matter, and at
``DEBUG`` everything. Where logging is off, nothing is heard, and a refusal is one for unknown reasons.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Nature: TypeAlias = Literal["unknown", "passing", "lasting", "too_large"]
"""Whether the same spans may be taken later (``passing``), or not (``lasting``), or in smaller portions."""

_PACKAGE: Final = "opentelemetry.exporter.otlp"
_LOGGERS: Final = (
    f"{_PACKAGE}.proto.http.trace_exporter",
    f"{_PACKAGE}.proto.http._log_exporter",
    f"{_PACKAGE}.proto.grpc.exporter",
    f"{_PACKAGE}.common.http",
)
_PASSING_HTTP: Final = {408, 429, 502, 503, 504}
_PASSING_GRPC: Final = {"ABORTED", "CANCELLED", "DATA_LOSS", "DEADLINE_EXCEEDED", "OUT_OF_RANGE", "RESOURCE_EXHAUSTED"}
"""What OTLP's specification calls retryable; UNAVAILABLE, the most frequent, is named apart."""
_PHRASES: Final = {status.phrase: status.value for status in HTTPStatus if status >= HTTPStatus.BAD_REQUEST}
_LONGEST: Final = 300
"""Characters of what an exporter said that are told."""

_logger = logging.getLogger("spangate")
_heard: ContextVar[list[logging.LogRecord] | None] = ContextVar("spangate-heard", default=None)


class Reason(NamedTuple):
    """Why spans were not taken: in one word to count by, in words to be told, and whether that passes."""

    word: str
    said: str
    nature: Nature


UNKNOWN: Final = Reason("refused", "", "unknown")


@contextmanager
def listening() -> Iterator[Sequence[logging.LogRecord]]:
    """Hear in this thread what exporters log as long as the block; nobody else hears it but at ``DEBUG``."""
    _prick_up_ears()
    heard: list[logging.LogRecord] = []
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


def reason_of(heard: Sequence[logging.LogRecord]) -> Reason:
    """Return why spans were refused, by what was heard meanwhile."""
    for record in reversed(heard):
        found = _reason_in(record)
        if found is not None:
            word, nature = found
            return Reason(f"refused: {word}", record.getMessage()[:_LONGEST], nature)
    if any("due to timeout" in record.msg for record in heard):
        return Reason("refused: unreachable", heard[-1].getMessage(), "passing")
    return UNKNOWN if not heard else UNKNOWN._replace(said=heard[-1].getMessage()[:_LONGEST])


def _reason_in(record: logging.LogRecord) -> tuple[str, Nature] | None:
    values = record.args if isinstance(record.args, tuple) else ()
    if "larger than max" in record.getMessage() or record.msg.startswith("Dropping"):
        return "413", "too_large"
    if record.msg.startswith("Transient"):
        return _by_status(values) or _by_phrase(values) or ("unreachable", "passing")
    return _by_status(values) or _by_phrase(values)


def _by_status(values: Sequence[Any]) -> tuple[str, Nature] | None:
    for value in values:
        if isinstance(value, enum.Enum):  # a status of gRPC
            name = value.name
            return name, "passing" if name == "UNAVAILABLE" or name in _PASSING_GRPC else "lasting"
        if type(value) is int and HTTPStatus.BAD_REQUEST <= value < 600:  # noqa: PLR2004  the end of HTTP's errors
            return str(value), _nature(value)
    return None


def _by_phrase(values: Sequence[Any]) -> tuple[str, Nature] | None:
    """Read the phrase of a status, which is all that is logged of one that passes."""
    for value in values:
        status = _PHRASES.get(value) if isinstance(value, str) else None
        if status is not None:
            return str(status), _nature(status)
    return None


def _nature(status: int) -> Nature:
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return "too_large"
    return "passing" if status in _PASSING_HTTP else "lasting"


def _keep(record: logging.LogRecord) -> bool:
    """Keep what is logged while somebody listens in this thread. False: it goes no further."""
    heard = _heard.get()
    if heard is None:
        return True
    heard.append(record)
    _logger.debug("%s: %s", record.name, record.getMessage())
    return False


def _prick_up_ears() -> None:
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if _keep not in logger.filters:
            logger.filters.insert(0, _keep)  # before the SDK's own, which drops what was logged a moment ago
