"""Fixtures of the tests with real frameworks: a gated provider, and the watch over what a test leaves behind."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frameworks.gated import Gated
from tests.frameworks.presence import missing

_tests = {path.name for path in Path(__file__).parent.glob("test_*.py")}
collect_ignore = sorted(_tests - {"test_presence.py"}) if missing() else []


@pytest.fixture
def gated() -> Iterator[Gated]:
    """A gate that waits for open spans as long as any test may take."""
    gated = Gated(grace_s=5.0)
    yield gated
    gated.provider.shutdown()


@pytest.fixture
def hasty() -> Iterator[Gated]:
    """A gate that hardly waits for open spans: for tests that leave some."""
    gated = Gated(grace_s=0.02)
    yield gated
    gated.provider.shutdown()


@pytest.fixture(autouse=True)
def _nothing_stays_behind() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(2)
        assert not thread.is_alive(), f"{thread.name} goes on after the test"
    if not missing():
        from tests.frameworks.openai_agent import is_untouched  # it cannot be imported without the frameworks

        assert is_untouched(), "an instrumentation of the client goes on after the test"


@pytest.fixture(autouse=True, scope="module")
def _no_socket_stays_open() -> Iterator[None]:
    """Have what was never closed say so (a warning, so an error) in the module that opened it."""
    yield
    gc.collect()
