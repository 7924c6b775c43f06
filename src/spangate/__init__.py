"""spangate: decides whether an AI-agent run may be believed, in the OpenTelemetry SDK that the run already uses."""

from spangate._errors import SpangateError
from spangate._judge import judge
from spangate._processor import GateSpanProcessor
from spangate._records import Finding, Gate, Span, Verdict
from spangate._run import Run
from spangate._version import __version__
from spangate.gates import default_gates, strict_gates

__all__ = [
    "Finding",
    "Gate",
    "GateSpanProcessor",
    "Run",
    "Span",
    "SpangateError",
    "Verdict",
    "__version__",
    "default_gates",
    "judge",
    "strict_gates",
]
