"""How a program ends: what was held is judged and exported, and the end itself is not disturbed."""

from __future__ import annotations

import pytest

from tests.robustness import children


def test_a_run_that_is_open_at_the_end_of_the_program_leaves_its_verdict() -> None:
    child = children.run("end_of_main")
    assert (child.code, child.errors) == (0, "")
    assert child.told == {"over": "pass", "refused open": "fail completeness.root_open"}
    assert child.names() == ["over/0", "over", "refused open"]


def test_leaving_from_within_a_run_keeps_the_exit_code() -> None:
    child = children.run("sys_exit")
    assert (child.code, child.errors) == (3, "")
    assert child.told == {"refused left": "fail completeness.open_span"}


def test_an_exception_that_nobody_handles_is_told_as_it_would_be_without_a_gate() -> None:
    child = children.run("unhandled")
    assert child.code == 1
    assert child.errors.count("Traceback") == 1
    assert child.errors.endswith("RuntimeError: the agent's own\n")
    assert child.told == {"failed": "pass", "refused open": "fail completeness.root_open"}


def test_daemon_threads_in_the_middle_of_runs_do_not_disturb_the_end() -> None:
    child = children.run("daemon_threads")
    assert (child.code, child.errors) == (0, "")
    verdicts = [span for span in child.spans if span["verdict"]]
    assert len(verdicts) >= 50
    assert {code for span in verdicts for code in span["findings"]} <= {
        "completeness.open_span",
        "completeness.root_open",
    }


def test_a_gate_that_saw_no_span_says_nothing() -> None:
    child = children.run("never_used")
    assert (child.code, child.lines, child.errors) == (0, [], "")


def test_a_first_run_when_threads_can_start_no_longer_is_judged_all_the_same() -> None:
    child = children.run("first_span_at_exit")
    assert (child.code, child.errors) == (0, "")
    assert child.told == {"late": "pass"}
    assert child.names() == ["late/0", "late/1", "late"]


@pytest.mark.parametrize("attempt", range(2))
def test_a_signal_handler_may_shut_down_whatever_it_interrupts(attempt: int) -> None:  # noqa: ARG001  chance decides
    child = children.run("terminated")
    assert (child.code, child.errors) == (0, "")
    assert child.event("shut down")
    assert child.told["run"] == "pass"
    assert {span["name"] for span in child.spans if span["verdict"] == "fail"} <= {"refused run"}
