"""Record what an agent decides and what comes of it, and replay it without a network.

A decision is a call of a model or of a tool, or a look at the environment. Its key is a hash of everything that it is
made from; recorded under it is what came of it.

>>> from spangate import tape
>>> with tape.record("weather.jsonl") as recording:  # doctest: +SKIP
...     recording.call("tool", {"name": "weather", "args": {"city": "Paris"}}, lambda: "sunny")
>>> with tape.replay("weather.jsonl") as replaying:  # doctest: +SKIP
...     replaying.call("tool", {"name": "weather", "args": {"city": "Paris"}}, no_network)
'sunny'
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from os import PathLike
from typing import Literal

from spangate._redaction import SECRET_KEYS
from spangate.tape._cassette import Cassette, Decision, Header, read_cassette
from spangate.tape._clients import (
    httpx2_async_transport,
    httpx2_transport,
    httpx_async_transport,
    httpx_transport,
    patch_httpx,
)
from spangate.tape._errors import (
    CassetteError,
    CassetteLockedError,
    LeftOverError,
    ReplayedError,
    ReplayMiss,
    TapeError,
)
from spangate.tape._harness import harness_of, what_differs
from spangate.tape._keys import tape_key
from spangate.tape._outcomes import Outcome
from spangate.tape._pending import Pending
from spangate.tape._recording import Recording, Redact
from spangate.tape._replaying import Replaying, Report, Severity
from spangate.tape._tape import Tape

__all__ = [
    "Cassette",
    "CassetteError",
    "CassetteLockedError",
    "Decision",
    "LeftOverError",
    "Outcome",
    "Pending",
    "Recording",
    "ReplayMiss",
    "ReplayedError",
    "Replaying",
    "Report",
    "Tape",
    "TapeError",
    "httpx2_async_transport",
    "httpx2_transport",
    "httpx_async_transport",
    "httpx_transport",
    "patch_httpx",
    "read_cassette",
    "record",
    "replay",
    "tape_key",
]

_logger = logging.getLogger("spangate")


def record(
    path: str | PathLike[str],
    *,
    existing: Literal["refuse", "overwrite", "append"] = "refuse",
    secrets: Iterable[str] = SECRET_KEYS,
    redact: Redact | None = None,
    environment: Iterable[str] = (),
    harness: str | PathLike[str] = ".",
) -> Recording:
    """Make a tape that records to a cassette: JSON lines, each flushed when what came of its decision is known.

    Args:
        path: The file, made with mode 0600.
        existing: What becomes of a cassette that is there: it is an error, it goes, or the recording goes on.
        secrets: Keys whose values are not kept, in payloads and results that are JSON. The key of a decision is hashed
            over the values all the same, so that it is found again.
        redact: A function of the kind and a value that returns what may be kept of it.
        environment: Names of variables that may be read through the tape.
        harness: A directory of the program's repository, whose commit is noted.

    Raises:
        CassetteLockedError: another tape is recording to it.
        CassetteError: it is there already, or cannot be written.
    """
    commit, dirty = harness_of(harness)
    return Recording(path, existing, Header(commit, dirty, tuple(secrets)), redact, environment)


def replay(
    path: str | PathLike[str],
    *,
    commit: Severity = "warn",
    left_over: Severity = "warn",
    environment: Iterable[str] = (),
    changed_environment: Severity = "warn",
    harness: str | PathLike[str] = ".",
) -> Replaying:
    """Make a tape that replays a cassette, and lets nothing happen that is not in it.

    Args:
        path: The file.
        commit: What it does if the program is of another commit than the one that was recorded.
        left_over: What recorded decisions do that were never made, at the end.
        environment: Names of variables that may be read through the tape.
        changed_environment: What a variable does that has another value than when it was recorded.
        harness: A directory of the program's repository.

    Raises:
        CassetteError: it cannot be read.
        TapeError: it is of another commit, and ``commit="raise"``.
    """
    cassette = read_cassette(path)
    if cassette.cut:
        _logger.warning("%s: line %d is cut off and left out: the recording broke off there", path, cassette.cut)
    differs = what_differs(cassette.header, harness_of(harness)) if commit != "ignore" else ""
    if differs and commit == "raise":
        raise TapeError(f"{path}: {differs}")
    if differs:
        _logger.warning("%s: %s", path, differs)
    return Replaying(cassette, differs, left_over, environment, changed_environment)
