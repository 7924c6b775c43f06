"""No gate outlives its test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live.gated import Gated


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while Gated.made:
        Gated.made.pop().gate.shutdown()
