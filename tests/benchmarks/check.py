"""How fast recorded runs are read and judged from a file, and whether memory grows with the file."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.benchmarks._rows import Row
from tests.benchmarks._workload import AGENT, GENERATION, TOOL, TURNS

LEAST_PER_S: Final = 60_000
GROWTH: Final = 1.1
SMALL, LARGE = 40_000, 200_000
_CLIENT, _INTERNAL = 3, 1
_COMMANDS: Final = {
    "parsed": ("-c", "import json, sys\nfor line in open(sys.argv[1]): json.loads(line)"),
    "read": ("-c", "import sys; from spangate.archive import read\nfor trace in read(sys.argv[1]): pass"),
    "read and judged": ("-c", "from spangate.cli import main; main()", "check", "--format", "json"),
}
_MIB: Final = 1024.0
"""KiB, the unit in which Linux tells the peak."""


class Cost(NamedTuple):
    """What a child process used."""

    cpu_s: float
    peak_mib: float


def rows() -> Iterator[Row]:
    """Go through a small file and one five times as large; the difference is the work, without the start."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        small, large = (recording(Path(folder), spans) for spans in (SMALL, LARGE))
        costs = {
            name: (_cost(*command, str(small)), _cost(*command, str(large))) for name, command in _COMMANDS.items()
        }
    for name, (before, after) in costs.items():
        figures[name] = (LARGE - SMALL) / (after.cpu_s - before.cpu_s)
    for name, limit in (("read", LEAST_PER_S), ("read and judged", None)):
        yield Row(
            benchmark="check",
            measured=f"spans {name} in a second of CPU",
            unit="spans/s",
            ours=figures[name],
            peer="json.loads alone",
            theirs=figures["parsed"],
            limit=limit,
            bound="least",
        )
    before, after = costs["read and judged"]
    yield Row(
        benchmark="check",
        measured=f"peak memory at {LARGE:,} spans",
        unit="MiB",
        ours=after.peak_mib,
        peer=f"at {SMALL:,} spans",
        theirs=before.peak_mib,
        limit=GROWTH,
    )


def _cost(*arguments: str) -> Cost:
    child = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, child.args)
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / _MIB)


def recording(folder: Path, spans: int) -> Path:
    """Write runs of 20 spans in OTLP/JSON, one run a line."""
    path = folder / f"{spans}.jsonl"
    ids = itertools.count(1)
    with path.open("w") as file:
        for number in range(spans // (2 * TURNS)):
            file.write(json.dumps(_export(list(_run(number, ids)))) + "\n")
    return path


def _export(spans: list[dict[str, Any]]) -> dict[str, Any]:
    resource = {"attributes": [_attribute("service.name", "benchmark")]}
    scope = {"name": "opentelemetry.instrumentation.genai.openai", "version": "1.0"}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}


def _run(number: int, ids: Iterator[int]) -> Iterator[dict[str, Any]]:
    begin = 1_700_000_000_000_000_000 + number * 10**9
    root = _span(number, next(ids), None, "invoke_agent researcher", begin, AGENT)
    for turn in range(TURNS):
        at = begin + turn * 1_000_000
        said = {
            "gen_ai.response.model": "gpt-4o-2024-08-06",
            "gen_ai.response.id": f"chatcmpl-{turn}",
            "gen_ai.usage.input_tokens": 1200,
            "gen_ai.usage.output_tokens": 80,
        }
        yield _span(number, next(ids), root["spanId"], "chat gpt-4o", at, {**GENERATION, **said}, _CLIENT)
        if turn < TURNS - 1:
            yield _span(number, next(ids), root["spanId"], "execute_tool search", at + 500_000, TOOL)
    root["endTimeUnixNano"] = str(begin + 10**8)
    yield root


def _span(  # noqa: PLR0917  what OTLP has on every span
    number: int,
    span_id: int,
    parent: str | None,
    name: str,
    begin: int,
    attributes: dict[str, Any],
    kind: int = _INTERNAL,
) -> dict[str, Any]:
    return {
        "traceId": f"{number + 1:032x}",
        "spanId": f"{span_id:016x}",
        **({} if parent is None else {"parentSpanId": parent}),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(begin),
        "endTimeUnixNano": str(begin + 400_000),
        "attributes": [_attribute(key, value) for key, value in attributes.items()],
        "status": {},
    }


def _attribute(key: str, value: str | int) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}
