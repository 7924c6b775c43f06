"""The page by the rules of axe-core, which tell what somebody without eyes, hands or colours could not use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.receiver.node_child import MODULES
from tests.report.browser import Browser
from tests.report.recorded import broken, changed, page_of, recording, sound

_CHECK = """
const done = arguments[arguments.length - 1];
axe.run(document, { resultTypes: ["violations"] }).then(
  (found) => done(found.violations.map((one) => [one.id, one.help, one.nodes.map((node) => node.html.slice(0, 200))])),
  (error) => done([["error", String(error), []]]),
);
"""


@pytest.fixture
def rules() -> str:
    """Return the source of axe-core. Skips the test where it is not installed; in CI that is a failure."""
    path = Path(os.environ.get(MODULES, "/nowhere")) / "axe-core" / "axe.min.js"
    if not path.is_file():
        missing = f"needs axe-core: npm install what tests/receiver/node/package.json names, and set {MODULES}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return path.read_text(encoding="utf-8")


def violations(browser: Browser, rules: str) -> list[Any]:
    browser.run(rules)  # the driver's own script: the policy of the page lets no other in
    found: list[Any] = browser.run_async(_CHECK)
    return [[rule, words, nodes[:4]] for rule, words, nodes in found]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("anchor", ["", "#run-2/3"])
def test_several_runs_and_one_of_them_with_details(
    browser: Browser, rules: str, several: str, theme: str, anchor: str
) -> None:
    browser.media(prefers_color_scheme=theme)
    browser.open(several, anchor)
    browser.run("for (const folded of document.querySelectorAll('details')) folded.open = true")
    assert violations(browser, rules) == []


@pytest.mark.parametrize("width", [360, 1360])
def test_one_run(browser: Browser, rules: str, refused: str, width: int) -> None:
    browser.width(width)
    browser.open(refused)
    assert violations(browser, rules) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_difference_of_two_runs(browser: Browser, rules: str, tmp_path: Path, theme: str) -> None:
    recording(tmp_path / "old.jsonl", sound())
    recording(tmp_path / "new.jsonl", changed())
    browser.media(prefers_color_scheme=theme)
    browser.open(page_of(tmp_path / "new.jsonl", "--against", str(tmp_path / "old.jsonl")), "#run-1/6")
    assert violations(browser, rules) == []


def test_what_nobody_could_use_is_found(browser: Browser, rules: str, tmp_path: Path) -> None:
    recording(tmp_path / "run.jsonl", broken())
    browser.open(page_of(tmp_path / "run.jsonl"))
    browser.run("document.querySelector('.toolbar label').remove()")
    browser.run("document.querySelector('.toolbar input').placeholder = ''")
    assert [rule for rule, _, _ in violations(browser, rules)] == ["label"]
