"""How long a tree is waited for once its root has ended."""

from __future__ import annotations

import math

import pytest

from spangate._release.flush import Flush
from spangate._settle.patience import Patience

PATIENCE = Patience(grace_s=5.0, settle_s=0.25)
LIVE = Flush(deadline=100.0)
CLOSING = Flush(deadline=100.0, closing=True)


@pytest.mark.parametrize(
    ("quiet_at", "now", "flush", "expected"),
    [
        pytest.param(10.0, 10.125, None, None, id="quiet, membership is open"),
        pytest.param(10.0, 10.25, None, "root_end", id="quiet, membership is closed"),
        pytest.param(14.0, 14.125, None, None, id="quiet a while after the root's end"),
        pytest.param(14.0, 14.25, None, "root_end", id="quiet for long enough then"),
        pytest.param(None, 14.875, None, None, id="open spans within the grace"),
        pytest.param(None, 15.0, None, "root_end", id="open spans beyond it"),
        pytest.param(10.0, 10.0, LIVE, "force_flush", id="a flush cuts membership short"),
        pytest.param(None, 14.875, LIVE, None, id="a flush leaves the grace alone"),
        pytest.param(None, 15.0, LIVE, "root_end", id="a flush finds the grace over"),
        pytest.param(10.0, 10.0, CLOSING, "shutdown", id="a shutdown cuts membership short"),
        pytest.param(None, 10.0, CLOSING, "shutdown", id="a shutdown cuts the grace short"),
    ],
)
def test_a_root_that_ended_at_10(quiet_at: float | None, now: float, flush: Flush | None, expected: str | None) -> None:
    assert PATIENCE.over(10.0, quiet_at, now, flush) == expected


def test_no_wait_at_all_is_a_wait_too() -> None:
    at_once = Patience(grace_s=0.0, settle_s=0.0)
    assert at_once.over(10.0, 10.0, 10.0, None) == "root_end"
    assert at_once.over(10.0, None, 10.0, None) == "root_end"


def test_the_grace_ends_so_long_after_the_root() -> None:
    assert PATIENCE.grace_end(10.0) == 15.0


@pytest.mark.parametrize("name", ["grace_s", "settle_s"])
@pytest.mark.parametrize("value", [-0.1, math.nan])
def test_a_wait_that_is_none_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        Patience(**{name: value})
