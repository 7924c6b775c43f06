"""Environments of other people's packages: made once, kept, and never silently left out where they are wanted."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from _pytest.outcomes import Failed, Skipped

from tests.environments import DIRECTORY, ROOT, SECONDS, environment

WHAT_IS_FOUND = """
from importlib.metadata import entry_points
import spangate, opentelemetry.sdk.version as sdk
print(spangate.__file__, sdk.__version__, *(one.name for one in entry_points(group="opentelemetry_post_instrument")))
"""


def test_without_a_place_the_tests_that_need_one_are_skipped_and_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DIRECTORY, raising=False)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(Skipped, match=DIRECTORY):
        environment("oldest-sdk")


def test_without_a_place_the_gate_on_landing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DIRECTORY, raising=False)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(Failed, match=DIRECTORY):
        environment("oldest-sdk")


@pytest.mark.timeout(SECONDS)
def test_a_program_finds_spangate_beside_the_sdk_of_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    found = environment("oldest-sdk")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert "OTEL_SDK_DISABLED" not in found.variables()
    told = subprocess.run(
        [found.python, "-c", WHAT_IS_FOUND], env=found.variables(), capture_output=True, text=True, check=True
    )
    file, version, *names = told.stdout.split()
    assert (file, version) == (str(ROOT / "src" / "spangate" / "__init__.py"), "1.39.1")
    assert "spangate-attach" in names
    assert Path(environment("oldest-sdk").script("opentelemetry-instrument")).exists()
