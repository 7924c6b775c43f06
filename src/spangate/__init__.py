"""spangate: decides whether an AI-agent run may be believed, in the OpenTelemetry SDK that the run already uses."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spangate._asking import generation
    from spangate._attach import attach_parent
    from spangate._errors import SpangateError
    from spangate._install import install
    from spangate._judge import judge
    from spangate._log_processor import GateLogRecordProcessor
    from spangate._native import run
    from spangate._policy import load_policy
    from spangate._processor import GateSpanProcessor
    from spangate._records import Finding, Gate, Span, Verdict
    from spangate._run import Run
    from spangate._version import __version__
    from spangate.gates import default_gates, strict_gates

__all__ = [
    "Finding",
    "Gate",
    "GateLogRecordProcessor",
    "GateSpanProcessor",
    "Run",
    "Span",
    "SpangateError",
    "Verdict",
    "__version__",
    "attach_parent",
    "default_gates",
    "generation",
    "install",
    "judge",
    "load_policy",
    "run",
    "strict_gates",
]

# Names are imported when they are first asked for: the command line needs none of them to show its help, and the SDK
# alone takes a tenth of a second.
_HOMES = {
    "Finding": "_records",
    "Gate": "_records",
    "GateLogRecordProcessor": "_log_processor",
    "GateSpanProcessor": "_processor",
    "Run": "_run",
    "Span": "_records",
    "SpangateError": "_errors",
    "Verdict": "_records",
    "__version__": "_version",
    "attach_parent": "_attach",
    "default_gates": "gates",
    "generation": "_asking",
    "install": "_install",
    "judge": "_judge",
    "load_policy": "_policy",
    "run": "_native",
    "strict_gates": "gates",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'spangate' has no attribute {name!r}")
    value = getattr(import_module(f"spangate.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
