"""``spangate ledger``: what is on record, why a call is blocked, and forgetting it."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from spangate.cli._group import spangate
from spangate.ledger import RetryLedger
from spangate.testing import Clock


def run(*words: object, **environment: str) -> Result:
    return CliRunner().invoke(spangate, ["ledger", *map(str, words)], env=environment)


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def known(path: Path, repo: Path, clock: Clock) -> Path:
    """Make a ledger of two sessions, one of which works on a repository, five minutes later."""
    with closing(RetryLedger(path, session="old", clock=clock)) as ledger, ledger.guard("lint", "src") as call:
        call.exit(0)
    clock.advance(300)
    new = RetryLedger(path, session="new", repo=repo, clock=clock)
    with closing(new), new.guard("pytest", "-q", "8.3") as call:
        call.exit(1)
    return path


def fingerprint(path: Path, tool: str) -> str:
    with closing(RetryLedger(path)) as ledger:
        [found] = [attempt.fingerprint for attempt in ledger.attempts() if attempt.tool == tool]
    assert found is not None
    return found


def test_list_shows_what_is_known(known: Path, repo: Path) -> None:
    result = run("list", "--ledger", known)
    assert result.exit_code == 0
    first, session, files, second, _, tree, stat = result.stdout.splitlines()
    assert first == f"{fingerprint(known, 'lint')}  lint  ok (0) in 1 ms, 2026-01-01 00:00:00 UTC"
    assert (session, files) == ("    session: old", "    files: what changed is not known")
    assert second == f"{fingerprint(known, 'pytest')}  pytest 8.3  error (1) in 1 ms, 2026-01-01 00:05:00 UTC"
    assert tree.endswith(f" in {repo}")
    assert stat == "    files: +0 ~0 -0"


@pytest.mark.parametrize(
    ("scope", "tools"),
    [
        ([], ["lint", "pytest"]),
        (["--session", "old"], ["lint"]),
        (["--session", "old", "--repo", "{repo}"], []),
        (["--repo", "{repo}"], ["pytest"]),
        (["--older-than", "1s"], ["lint", "pytest"]),
        (["--older-than", "5000w"], []),
    ],
)
def test_list_in_a_scope(known: Path, repo: Path, scope: list[str], tools: list[str]) -> None:
    words = [word.format(repo=repo) for word in scope]
    result = run("list", "--format", "json", *words, SPANGATE_LEDGER=str(known))
    assert [row["tool"] for row in lines(result)] == tools
    assert result.exit_code == (0 if tools else 3)


def test_json_has_every_field(known: Path) -> None:
    row = lines(run("list", "--ledger", known, "--format", "json"))[1]
    assert (row["outcome"], row["exit_code"], row["version"], row["diff_stat"]) == ("error", 1, "8.3", "+0 ~0 -0")
    assert (row["ended_ns"], row["trace_id"]) == (row["started_ns"] + 1_000_000, "")


def test_why_says_that_a_call_is_blocked_until_the_tree_changes(known: Path, repo: Path) -> None:
    which = fingerprint(known, "pytest")
    result = run("why", "--ledger", known, which)
    assert result.exit_code == 1
    assert result.stdout.startswith(
        f"pytest {which}: blocked, since the same call failed with exit code 1 on 2026-01-01 00:05:00 UTC,"
        f" on this very tree\n{which}  pytest 8.3  error (1)"
    )
    [told] = lines(run("why", "--ledger", known, which, "--format", "json"))
    assert (told["blocked"], told["fingerprint"], told["earlier"]["id"]) == (True, which, 2)
    (repo / "a").write_text("mended", encoding="utf-8")
    result = run("why", "--ledger", known, which)
    assert result.exit_code == 0
    assert ": allowed, since the same call failed" in result.stdout
    assert "on another tree" in result.stdout


def test_why_knows_what_it_does_not_know(known: Path) -> None:
    result = run("why", "--ledger", known, "0" * 16)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == f"no call with the fingerprint {'0' * 16} is on record in {known}\n"


def test_why_needs_the_repository(known: Path, repo: Path) -> None:
    repo.rename(repo.with_name("moved"))
    result = run("why", "--ledger", known, fingerprint(known, "pytest"))
    assert result.exit_code == 2
    assert f"{repo} is no directory" in result.stderr


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        (["--all"], []),
        (["--session", "old"], ["pytest"]),
        (["--older-than", "1d"], []),
        (["--repo", "/"], ["lint", "pytest"]),
    ],
)
def test_forget_keeps_to_its_scope(known: Path, scope: list[str], left: list[str]) -> None:
    result = run("forget", "--ledger", known, *scope)
    assert result.exit_code == 0
    forgotten = 2 - len(left)
    assert result.stdout == f"{forgotten} call{'' if forgotten == 1 else 's'} forgotten\n"
    with closing(RetryLedger(known)) as ledger:
        assert [attempt.tool for attempt in ledger.attempts()] == left


def test_forget_by_fingerprint_lifts_a_veto(known: Path) -> None:
    which = fingerprint(known, "pytest")
    result = run("forget", "--ledger", known, "--fingerprint", which, "--format", "json")
    assert lines(result) == [{"forgotten": 1}]
    assert run("why", "--ledger", known, which).exit_code == 3


@pytest.mark.parametrize("words", [["forget"], ["forget", "--all", "--session", "a"], ["list", "--older-than", "soon"]])
def test_a_command_that_is_wrong_is_told(known: Path, words: list[str]) -> None:
    result = run(*words, "--ledger", known)
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    with closing(RetryLedger(known)) as ledger:
        assert len(ledger.attempts()) == 2


@pytest.mark.parametrize("words", [["list"], ["why", "0"], ["forget", "--all"]])
def test_a_ledger_that_is_none_is_told_and_not_made(tmp_path: Path, words: list[str]) -> None:
    nothing, garbage = tmp_path / "nothing", tmp_path / "garbage"
    garbage.write_bytes(b"garbage" * 1000)
    for place, what in ((nothing, "there is no ledger"), (garbage, "is damaged")):
        result = run(*words, "--ledger", place)
        assert result.exit_code == 2
        assert what in result.stderr
    assert not nothing.exists()


def test_the_ledger_has_to_be_named() -> None:
    result = run("list")
    assert result.exit_code == 2
    assert "--ledger" in result.stderr


@pytest.mark.parametrize("name", ["list", "why", "forget"])
def test_help_tells_the_exit_codes(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "Exit code:" in result.stdout
