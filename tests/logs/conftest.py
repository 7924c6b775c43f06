"""No gate and no log processor outlives its test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live.gated import Gated
from tests.logs.logged import Logged


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while Logged.made:
        Logged.made.pop().logs.shutdown()
    while Gated.made:
        Gated.made.pop().gate.shutdown()
