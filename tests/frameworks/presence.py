"""Which frameworks are installed, and whether one that is not is excused."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from opentelemetry.version import __version__ as api_version

NEEDED: Final = (
    "pydantic-ai-slim",
    "openai",
    "opentelemetry-instrumentation-genai-openai",
    "openinference-instrumentation-openai",
    "anthropic",
    "opentelemetry-instrumentation-genai-anthropic",
    "mcp",
)
FIRST_API: Final = (1, 43)
"""The first OpenTelemetry API for which there is an instrumentation of the openai client in the current conventions."""


def missing() -> list[str]:
    """Return the distributions that the tests of this folder need and that are not installed."""
    return [name for name in NEEDED if not _is_installed(name)]


def excuse() -> str | None:
    """Return why something may be missing: by design, or on a machine that is not the one which must test it all."""
    major, minor = api_version.split(".")[:2]
    if (int(major), int(minor)) < FIRST_API:
        return f"not to be had for the OpenTelemetry API {api_version}"
    return None if os.environ.get("CI") == "true" else "comes with the extra 'test'"


def _is_installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True
