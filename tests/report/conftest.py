"""One browser for all tests of a module, and pages of some recordings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.browser import Browser, opened
from tests.report.recorded import broken, page_of, recording, sound


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Start a browser with a profile that nobody has used."""
    with opened(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(started: Browser) -> Browser:
    """Return the browser as it was at first: light, as wide as a screen, and without motion to wait for."""
    started.media(prefers_color_scheme="light", prefers_reduced_motion="reduce")
    started.width(1360)
    return started


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of one refused run."""
    path = tmp_path_factory.mktemp("refused") / "run.jsonl"
    recording(path, broken())
    return page_of(path)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the page of two refused runs with one fault, and one that passes."""
    path = tmp_path_factory.mktemp("several") / "runs.jsonl"
    recording(path, sound(1), broken(2), broken(4))
    return page_of(path)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """Return the place of a policy with ceilings that the broken run exceeds, and does not."""
    path = tmp_path / "gates.toml"
    path.write_text("[budget]\nmax_input_tokens = 5000\nmax_calls = 10\n[timing]\nmax_untraced_fraction = 0.9\n")
    return path
