"""What vendors change in the standard library is put back after each test: other tests are not theirs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest


@pytest.fixture(autouse=True)
def pools_as_they_were(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Logfire carries the trace context into pools, as of a remote parent."""
    monkeypatch.setattr(ThreadPoolExecutor, "submit", ThreadPoolExecutor.submit)
    monkeypatch.setattr(ProcessPoolExecutor, "submit", ProcessPoolExecutor.submit)
    yield
    monkeypatch.undo()
