"""Patterns for paths mean what they mean in a ``.gitignore``: git itself is asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from spangate._globs import matcher
from tests.repositories import Workshop

PATHS = [
    *("a.log", "dir/a.log", "dir/sub/a.log", "a.log/x", "log", "a.txt", "b", "dir/b", "dir", "dir/x/y", "dirty/x"),
    *(
        "dist/app.js",
        "dist/sub/app.js",
        "src/dist/app.js",
        "a/b/c/d",
        "a/x/d",
        "a/d",
        "[x]",
        "x",
        "a b",
        "A.LOG",
        "+(x)",
    ),
    *("x!", "q.py", "q1.py", "q12.py", "éé/ü.txt", "a.logs", "xa.log", "-", "a-b", "x\ny.log"),
]
PATTERNS = [
    *("*.log", "a.log", "/a.log", "dir", "dir/", "dir/*", "dir/**", "**/b", "a/**/d", "dist/*.js", "**/dist/*.js", "*"),
    *("?", "q?.py", "q[0-9].py", "q[!1].py", "[[]x]", "[a-c]", "*/b", "dir/sub", "éé/*.txt", "**", "**/*.log", "+(x)"),
    *("x!", "src/**/app.js", "[-a]", "a?b", "/dir/x", "a/*/d"),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_git_would_ignore(tmp_path: Path, pattern: str) -> None:
    work = Workshop(tmp_path)
    work.put(".git/info/exclude", f"{pattern}\n")
    asked = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin", "-z"],
        cwd=tmp_path,
        input="\0".join(PATHS),
        capture_output=True,
        text=True,
        check=False,
    )
    matches = matcher([pattern])
    expected = {path for path in asked.stdout.split("\0") if path}
    if pattern == "dir/":  # git sees no directory on disk here; what is below one it would ignore
        expected = {path for path in PATHS if path.startswith("dir/")} | {"dir"}
    assert {path for path in PATHS if matches(path)} == expected


def test_several_patterns_match_what_one_of_them_does() -> None:
    matches = matcher(["*.log", "dist/*.js"])
    assert [path for path in PATHS if matches(path)] == [
        path for path in PATHS if matcher(["*.log"])(path) or matcher(["dist/*.js"])(path)
    ]


def test_no_pattern_matches_nothing() -> None:
    assert not any(map(matcher([]), PATHS))


def test_case_may_be_ignored() -> None:
    assert matcher(["*.log"], ignores_case=True)("A.LOG")
    assert not matcher(["*.log"])("A.LOG")
