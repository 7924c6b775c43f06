"""What the figures were taken on."""

from __future__ import annotations

import gc
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http", "protobuf", "logfire")


def facts() -> dict[str, str]:
    """Return the facts about this machine and its software that figures depend on."""
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "load": ", ".join(f"{load:.2f}" for load in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown",
        "gc": f"{'on' if gc.isenabled() else 'off'}, thresholds {gc.get_threshold()}",
        "switch interval": f"{sys.getswitchinterval() * 1000:g} ms",
        **{name: _version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
