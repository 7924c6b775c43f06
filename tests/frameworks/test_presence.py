"""The frameworks are here, or it is said why not; without them nothing else in this folder is collected."""

from __future__ import annotations

import pytest

from tests.frameworks.presence import NEEDED, excuse, missing


@pytest.mark.parametrize("distribution", NEEDED)
def test_the_framework_is_installed(distribution: str) -> None:
    why = excuse()
    if distribution in missing() and why is not None:
        pytest.skip(why)
    assert distribution not in missing()
