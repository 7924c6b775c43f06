"""The veto: which calls are the same evidence twice, and which are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangate import SpangateError
from spangate._attempts import call_of
from spangate._ledger.rows import Attempt, ruling
from spangate._redaction import SECRET_KEYS, Redaction
from spangate.ledger import LedgerError, RetryBlocked, RetryLedger
from spangate.testing import Clock

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "vectors" / "digests.json").read_text(encoding="utf-8"))
Step: TypeAlias = Callable[[RetryLedger], None]


def fingerprint(arguments: Any, tool: str = "ruff", version: str = "") -> str | None:
    return call_of(tool, version, arguments, Redaction()).fingerprint


@pytest.mark.parametrize("row", VECTORS["retry_fingerprint"])
def test_fingerprints_are_the_golden_ones(row: dict[str, str]) -> None:
    assert fingerprint(row["arg_text"], row["tool"], row["tool_version"]) == row["fp"]


SAME = [
    pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, id="order of keys"),
    pytest.param({"a": 1}, '{ "a" : 1 }', id="an object and its JSON"),
    pytest.param(["check", "src dir"], "check 'src dir'", id="words and their command line"),
    pytest.param("--token abc", "--token xyz", id="a secret behind an option"),
    pytest.param(["--token", "abc"], ["--token", "xyz"], id="the same in words"),
    pytest.param("API_KEY=a make", "API_KEY=b make", id="a secret in a variable"),
    pytest.param({"command": "API_KEY=a make"}, {"command": "API_KEY=b make"}, id="the same in one of the arguments"),
    pytest.param({"x": [{"Authorization": "a"}]}, {"x": [{"Authorization": "b"}]}, id="a secret deep inside"),
    pytest.param({"password": "a"}, {"password": ["b", {"c": 1}]}, id="a secret of whatever kind"),
    pytest.param(None, "", id="no arguments"),
]
OTHER = [
    pytest.param({"a": 1}, {"a": 2}, id="a value"),
    pytest.param({"a": 1}, {"a": "1"}, id="its kind"),
    pytest.param("check src", "check src ", id="a blank"),
    pytest.param(["a", "b"], ["a b"], id="where a word ends"),
    pytest.param({"password": "a"}, {"passwords_seen": 1}, id="a key that is no secret's"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_arguments_that_are_the_same(one: Any, other: Any) -> None:
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_arguments_that_are_not(one: Any, other: Any) -> None:
    assert fingerprint(one) != fingerprint(other)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(inner) for inner in value] if isinstance(value, list) else value


@settings(max_examples=50)
@given(st.dictionaries(st.text(), JSON))
def test_the_order_of_keys_changes_nothing(arguments: dict[str, Any]) -> None:
    assert fingerprint(arguments) == fingerprint(reordered(arguments)) == fingerprint(json.dumps(arguments))


@settings(max_examples=50)
@given(st.dictionaries(st.text(), JSON), st.sampled_from(SECRET_KEYS), JSON, JSON)
def test_the_value_of_a_secret_changes_nothing(arguments: dict[str, Any], key: str, one: Any, other: Any) -> None:
    name = f"my_{key}".upper()
    assert fingerprint({**arguments, name: one}) == fingerprint({**arguments, name: other})


@pytest.mark.parametrize("arguments", [{"a": {1, 2}}, b"abc", {"a": object()}])
def test_arguments_that_are_no_json_are_refused(ledger: RetryLedger, arguments: Any) -> None:
    with pytest.raises(TypeError):
        ledger.veto("tool", arguments)


def made(arguments: Any = "x", *, code: int = 0, tree: str | None = None, **more: Any) -> Step:
    """Make a call."""

    def step(ledger: RetryLedger) -> None:
        with ledger.guard("tool", arguments, tree_hash=tree, **more) as call:
            call.exit(code)

    return step


def raising(error: BaseException) -> Step:
    def step(ledger: RetryLedger) -> None:
        with pytest.raises(type(error)), ledger.guard("tool", "x"):
            raise error

    return step


def running(ledger: RetryLedger) -> None:
    ledger.guard("tool", "x").__enter__()


BLOCKS = [
    pytest.param([made(code=1)], {}, id="it failed"),
    pytest.param([made(code=-9)], {}, id="it was killed"),
    pytest.param([raising(OSError("no"))], {}, id="it raised"),
    pytest.param([raising(TimeoutError())], {}, id="its time was up"),
    pytest.param([made(code=1, tree="A")], {"tree_hash": "A"}, id="it failed on this tree"),
    pytest.param([made(code=1), running], {}, id="it failed, and runs again"),
    pytest.param([made(code=1, session="other")], {}, id="it failed in whichever session"),
    pytest.param([made(code=1, session="mine")], {"session": "mine"}, id="it failed in this session"),
    pytest.param([made(code=1)], {"max_age_s": 60}, id="it failed lately"),
    pytest.param([made(code=1), raising(KeyboardInterrupt())], {}, id="it failed before it was interrupted"),
]
ALLOWS = [
    pytest.param([], {}, "no such call", id="never made"),
    pytest.param([made()], {}, "may have changed something", id="it succeeded"),
    pytest.param([made(code=1, tree="A")], {"tree_hash": "B"}, "on another tree", id="it failed on another tree"),
    pytest.param([made(code=1)], {"tree_hash": "B"}, "nobody has recorded", id="it failed on an unknown tree"),
    pytest.param([made(code=1, tree="A")], {}, "on another tree", id="the tree is not known now"),
    pytest.param([made(code=1, arguments="y")], {}, "no such call", id="other arguments failed"),
    pytest.param([made(code=1, version="1")], {}, "no such call", id="another version failed"),
    pytest.param([made(code=1, session="other")], {"session": "mine"}, "no such call", id="another session's failure"),
    pytest.param([made(code=1)], {"max_age_s": 0}, "no such call", id="long ago"),
    pytest.param([raising(KeyboardInterrupt())], {}, "was cancelled", id="it was interrupted"),
    pytest.param([raising(StopIteration())], {}, "handed control back", id="control flow"),
    pytest.param([running], {}, "not been seen to end", id="it still runs"),
]


def happened(ledger: RetryLedger, steps: list[Step]) -> None:
    """Have calls made, whatever has happened before."""
    with closing(RetryLedger(ledger.path, exempt=["*"], clock=ledger.book.terms.clock)) as lenient:
        for step in steps:
            step(lenient)


@pytest.mark.parametrize(("steps", "asked"), BLOCKS)
def test_blocks(ledger: RetryLedger, steps: list[Step], asked: dict[str, Any]) -> None:
    happened(ledger, steps)
    veto = ledger.veto("tool", "x", **asked)
    assert veto
    assert veto.earlier is not None
    assert veto.earlier.failed


@pytest.mark.parametrize(("steps", "asked", "reason"), ALLOWS)
def test_allows(ledger: RetryLedger, steps: list[Step], asked: dict[str, Any], reason: str) -> None:
    happened(ledger, steps)
    veto = ledger.veto("tool", "x", **asked)
    assert not veto
    assert reason in veto.reason


def test_a_call_that_changed_nothing_is_blocked_and_one_that_changed_something_is_not(
    path: Path, repo: Path, clock: Clock
) -> None:
    ledger = RetryLedger(path, repo=repo, clock=clock)
    with ledger.guard("touch", "b"):
        (repo / "b").write_text("new", encoding="utf-8")
    assert "on another tree" in ledger.veto("touch", "b").reason
    with ledger.guard("touch", "b"):
        pass
    veto = ledger.veto("touch", "b")
    assert veto
    assert "succeeded" in veto.reason
    assert veto.reason.endswith("and changed nothing")
    assert [attempt.diff_stat for attempt in ledger.attempts()] == ["+1 ~0 -0", "+0 ~0 -0"]
    ledger.close()


def test_an_edit_is_new_evidence_and_taking_it_back_is_not(path: Path, repo: Path, clock: Clock) -> None:
    ledger = RetryLedger(path, repo=repo, clock=clock)
    with ledger.guard("pytest", "-q", "8.3") as call:
        call.exit(1)
    with pytest.raises(RetryBlocked), ledger.guard("pytest", "-q", "8.3"):
        raise AssertionError
    (repo / "a").write_text("two\n", encoding="utf-8")
    assert not ledger.veto("pytest", "-q", "8.3")
    (repo / "a").write_text("one\n", encoding="utf-8")
    assert ledger.veto("pytest", "-q", "8.3")
    ledger.close()


def test_repositories_know_nothing_of_each_other(path: Path, repo: Path, clock: Clock) -> None:
    here, elsewhere = RetryLedger(path, repo=repo, clock=clock), RetryLedger(path, clock=clock)
    for one, other in ((here, elsewhere), (elsewhere, here)):
        with one.guard(one.book.terms.repository, "x") as call:
            call.exit(1)
        assert one.veto(one.book.terms.repository, "x")
        assert not other.veto(one.book.terms.repository, "x")
        one.close()


def test_a_directory_without_a_repository_is_told_before_anything_runs(path: Path, tmp_path: Path) -> None:
    ledger = RetryLedger(path, repo=tmp_path)
    with pytest.raises(SpangateError, match="not a git repository"), ledger.guard("tool"):
        raise AssertionError


@pytest.mark.parametrize("place", ["calls.db", "sub/calls.db"])
def test_a_ledger_that_would_change_the_tree_is_refused(repo: Path, place: str) -> None:
    with pytest.raises(LedgerError, match=r"lies in the working tree .* have git ignore it"):
        RetryLedger(repo / place, repo=repo).veto("tool")


def test_a_ledger_that_git_ignores_or_keeps_may_be_there(repo: Path) -> None:
    (repo / ".gitignore").write_text("*.db*\n", encoding="utf-8")
    for place in (repo / "calls.db", repo / ".git" / "calls.db"):
        ledger = RetryLedger(place, repo=repo)
        with ledger.guard("tool") as call:
            call.exit(1)
        assert ledger.veto("tool")
        ledger.close()


def test_tools_may_be_exempt_and_are_written_down_all_the_same(path: Path, clock: Clock) -> None:
    ledger = RetryLedger(path, exempt=("poll_*",), clock=clock)
    for _ in range(2):
        with ledger.guard("poll_queue", "x") as call:
            call.exit(1)
    assert ledger.veto("poll_queue", "x").reason == "poll_queue is exempt"
    assert [attempt.exit_code for attempt in ledger.attempts()] == [1, 1]
    with ledger.guard("repoll_queue", "x") as call:
        call.exit(1)
    assert ledger.veto("repoll_queue", "x")
    ledger.close()


def test_age_is_counted_from_the_end(ledger: RetryLedger, clock: Clock) -> None:
    with ledger.guard("tool") as call:
        clock.advance(100)
        call.exit(1)
    clock.advance(50)
    assert ledger.veto("tool", max_age_s=60)
    clock.advance(50)
    assert not ledger.veto("tool", max_age_s=60)


def test_the_answer_tells_which_call_it_was(ledger: RetryLedger) -> None:
    with pytest.raises(ValueError, match="no"), ledger.guard("tool", "x"):
        raise ValueError("no")
    with pytest.raises(RetryBlocked) as refused, ledger.guard("tool", "x"):
        raise AssertionError
    earlier = refused.value.veto.earlier
    assert earlier is not None
    assert (earlier.id, earlier.outcome, earlier.exit_code) == (1, "error", None)
    assert str(refused.value) == (
        "tool is blocked: the same call failed on 2026-01-01 00:00:00 UTC, and nothing is known to have changed since."
        " Change what it is called with or what it works on; if the repeat is meant: spangate ledger forget"
        f" --ledger {ledger.path} --fingerprint {refused.value.veto.fingerprint}"
    )


@pytest.mark.parametrize("setting", ["max_age_s", "busy_timeout_s"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_times_are_finite_and_not_negative(path: Path, setting: str, value: float) -> None:
    wrong: dict[str, Any] = {setting: value}
    with pytest.raises(ValueError, match=setting):
        RetryLedger(path, **wrong)


def test_forgetting_needs_a_scope_and_keeps_to_it(ledger: RetryLedger, clock: Clock) -> None:
    for session in ("a", "b", "b"):
        with ledger.guard(session, session=session):
            clock.advance(10)
    with pytest.raises(ValueError, match="say what to forget"):
        ledger.forget()
    assert ledger.forget(session="b", older_than_s=5) == 1
    assert [attempt.session for attempt in ledger.attempts()] == ["a", "b"]
    assert ledger.forget(fingerprint=ledger.attempts()[0].fingerprint) == 1
    assert ledger.forget_all() == 1
    assert ledger.attempts() == []


def test_numbers_are_not_given_twice(ledger: RetryLedger) -> None:
    with ledger.guard("tool"):
        pass
    ledger.forget_all()
    with ledger.guard("tool"):
        pass
    assert [attempt.id for attempt in ledger.attempts()] == [2]


def attempt(**fields: Any) -> Attempt:
    known = {
        "id": 1,
        "fingerprint": "f",
        "tool": "t",
        "version": "",
        "tree_before": "A",
        "tree_after": "A",
        "outcome": "ok",
        "exit_code": 0,
        "diff_stat": None,
        "session": "",
        "repository": "",
        "trace_id": "",
        "span_id": "",
        "sighting": "ended",
        "origin": "guard",
        "started_ns": 0,
        "ended_ns": 1,
    }
    return Attempt(**{**known, **fields})


def test_what_succeeded_in_a_span_that_was_never_seen_to_end_is_no_success() -> None:
    assert attempt().changed_nothing
    missing = attempt(sighting="missing")
    assert (missing.is_incomplete, missing.changed_nothing) == (True, False)
    assert not ruling("f", None, missing)
    assert "no evidence" in ruling("f", None, missing).reason


def test_what_failed_here_has_failed_whatever_became_of_its_span() -> None:
    failed = attempt(outcome="error", exit_code=1, sighting="missing")
    assert (failed.is_incomplete, failed.failed) == (False, True)
    assert ruling("f", failed, failed)
