"""Bounds that open spans reach: they are let go, and what they turn out to be is judged when it shows."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import Span

from tests.live.gated import Gated, What


def crowded(gated: Gated, what: What) -> tuple[Span, list[Span]]:
    """Open more spans below a root than a tree may hold, and wait until they have been let go."""
    root = gated.start(what, "root")
    spans = [gated.start("other", f"{number}", under=root) for number in range(4)]
    gated.until(lambda: gated.gate._buffer.count_spans() == 0)
    return root, spans


@pytest.mark.parametrize("what", ["other", "entry"])
def test_open_spans_that_are_let_go_pass_when_they_end(what: What) -> None:
    gated = Gated(max_run_spans=3)
    root, spans = crowded(gated, what)
    for span in (*spans, root):
        span.end()
    assert gated.flush()
    assert sorted(gated.names) == ["0", "1", "2", "3", "root"]
    assert gated.told == {}
    assert gated.gate.losses == {}


def test_one_that_turns_out_to_be_an_agent_is_refused_for_what_went_before() -> None:
    gated = Gated(max_run_spans=3)
    root, spans = crowded(gated, "other")
    root.set_attribute("gen_ai.operation.name", "invoke_agent")
    root.end()
    assert gated.flush()
    assert gated.told == {"root": "fail buffer.overflow"}
    assert gated.names == ["refused root"]
    assert spans


def test_an_agent_that_starts_below_one_is_refused_for_what_went_before() -> None:
    gated = Gated(max_run_spans=3)
    root, spans = crowded(gated, "other")
    with gated.open("agent", under=spans[0]) as agent:
        gated.ended("tool", under=agent)
    gated.ended("other", "plain", under=root)
    assert gated.flush()
    assert gated.told == {"agent": "fail buffer.overflow"}
    assert sorted(gated.names) == ["plain", "refused agent"]


def test_an_agent_below_a_request_that_was_let_go_is_a_run_of_its_own() -> None:
    gated = Gated(max_run_spans=3)
    root, spans = crowded(gated, "entry")
    with gated.open("agent", under=spans[0]) as agent:
        gated.ended("tool", under=agent)
    assert gated.flush()
    assert gated.told == {"agent": "pass"}
    root.end()
