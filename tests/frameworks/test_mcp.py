"""An MCP server over stdio: the context crosses in the metadata of JSON-RPC, and the server's spans join the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

AGENT = Path(__file__).with_name("mcp_agent.py")
SENT, ANSWERED, WORK = "MCP send tools/call grep", "tools/call grep", "read files"
SENT_AT_EXIT = {"OTEL_BSP_SCHEDULE_DELAY": "3600000"}
"""Has the server send its spans when it ends."""
Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What was said of each run, codes with details, and the spans that have left."""

    said: dict[str, list[tuple[str, str]]]
    spans: list[Json]

    @property
    def codes(self) -> dict[str, set[str]]:
        return {run: {code for code, _ in found} for run, found in self.said.items()}

    def named(self, name: str) -> list[Json]:
        return [span for span in self.spans if span["name"] == name]

    def run(self, name: str) -> list[Json]:
        """The spans of the run whose root has this name."""
        (root,) = self.named(name)
        return [span for span in self.spans if _run_id(span) == _run_id(root)]


def outcome(*arguments: str, **variables: str) -> Outcome:
    """Let the agent run with these variables as well, and return what came of it."""
    command, environment = [sys.executable, str(AGENT), *arguments], {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return Outcome(**json.loads(done.stdout))


def check_calls(spans: list[Json], count: int) -> None:
    """Check that the spans of a run hold so many calls in one tree, each from the client to what the server did."""
    sent, answered, work = ([span for span in spans if span["name"] == name] for name in (SENT, ANSWERED, WORK))
    assert [len(sent), len(answered), len(work)] == [count] * 3
    assert {span["kind"] for span in sent} == {"SpanKind.CLIENT"}
    assert {(span["kind"], span["attributes"]["gen_ai.operation.name"]) for span in answered} == {
        ("SpanKind.SERVER", "execute_tool")
    }
    assert len({span["context"]["trace_id"] for span in spans}) == 1
    (root,) = [span for span in spans if span["parent_id"] is None]
    assert {span["parent_id"] for span in sent} == {_id(root)}
    assert _parents(answered) == _ids(sent)
    assert _parents(work) == _ids(answered)


def test_a_server_that_the_run_starts_is_in_its_tree() -> None:
    done = outcome()
    assert done.said == {"invoke_agent one": []}
    check_calls(done.run("invoke_agent one"), 2)
    root = done.spans[-1]
    assert root["name"] == "invoke_agent one"
    counted = [root["attributes"][f"spangate.spans_{what}"] for what in ("started", "ended", "withheld")]
    assert counted == [len(done.spans), len(done.spans), 0]
    (program,) = [span for span in done.spans if "process.exit.code" in span["attributes"]]
    assert program["attributes"]["process.exit.code"] == 0
    assert program["parent_id"] == _id(root)


def test_its_answer_to_another_run_is_in_that_one() -> None:
    done = outcome("--other-run")
    assert done.said == {"invoke_agent one": [], "invoke_agent two": []}
    check_calls(done.run("invoke_agent one"), 2)
    check_calls(done.run("invoke_agent two"), 1)


@pytest.mark.parametrize("variables", [{}, SENT_AT_EXIT], ids=["soon", "after both verdicts"])
def test_one_that_outlives_its_run_is_an_open_span_of_it_and_still_answers_to_others(variables: dict[str, str]) -> None:
    done = outcome("--outlive", **variables)
    assert done.codes == {"invoke_agent one": {"completeness.open_span"}, "invoke_agent two": set()}
    ((_, detail),) = done.said["invoke_agent one"]
    assert "wait for the program or end it" in detail
    check_calls(done.run("invoke_agent two"), 1)
    others = [span["name"] for span in done.spans if span not in done.run("invoke_agent two")]
    assert others == ["refused invoke_agent one"]


def test_without_the_context_in_the_metadata_the_run_is_split() -> None:
    done = outcome("--drop-context")
    assert done.codes == {"invoke_agent one": {"forest.stray_root"}}
    blamed = f"recorded by the program {Path(sys.executable).name!r}"
    for _, detail in done.said["invoke_agent one"]:
        assert blamed in detail
        assert "ignored the context" in detail
    (refused,) = done.spans
    assert refused["name"] == "refused invoke_agent one"
    strays = [line.split(" | ")[1] for line in refused["attributes"]["spangate.details"]]
    assert strays.count(ANSWERED) == 2


def _id(span: Json) -> str:
    return str(span["context"]["span_id"])


def _ids(spans: list[Json]) -> list[str]:
    return sorted(map(_id, spans))


def _parents(spans: list[Json]) -> list[str]:
    return sorted(str(span["parent_id"]) for span in spans)


def _run_id(span: Json) -> str:
    return str(span["attributes"]["spangate.run_id"])
