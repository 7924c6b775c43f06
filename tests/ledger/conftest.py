"""A ledger of its own for each test, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spangate.ledger import RetryLedger
from spangate.testing import Clock
from tests.ledger.repositories import repository


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the ledger is to be; nothing is there yet."""
    return tmp_path / "ledger" / "calls.db"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(path: Path, clock: Clock) -> Iterator[RetryLedger]:
    made = RetryLedger(path, clock=clock)
    yield made
    made.close()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")
