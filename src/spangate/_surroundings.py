"""What the process was started with that bears on its runs: the trace context in its environment."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from spangate._records import Finding

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def surroundings(environment: Mapping[str, str]) -> Sequence[Finding]:
    """Return what every run of this process should be told about the environment that the process started with.

    A ``TRACEPARENT`` that no propagator takes (W3C Trace Context: lower-case hex, version not ff, ids not zero) means
    that whoever started the program wanted its run in a trace of theirs, and it is not.
    """
    value = environment.get("TRACEPARENT")
    if value is None or _TRACEPARENT.fullmatch(value.strip()):
        return ()
    what = "TRACEPARENT in the environment is malformed, so the run is in a trace of its own"
    return (Finding("context.traceparent_invalid", None, what),)
