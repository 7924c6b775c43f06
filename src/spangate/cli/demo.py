"""``spangate demo``: one agent, three runs, and what reaches the backend of each."""

from __future__ import annotations

import json
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from spangate import _keys as keys
from spangate._processor import GateSpanProcessor
from spangate._records import Gate, Verdict
from spangate._run import Run
from spangate._settle.look import read
from spangate._units import counted
from spangate._verdict.text import plain, verdict_text
from spangate.cli._check_report import as_json
from spangate.cli._console import quiet_log, style_of
from spangate.cli._demo_agent import READ, RUN, WRITE, Dispatch, Step, here, repair, tests_in_a_bare_thread
from spangate.cli._tree_report import text_tree
from spangate.gates import Budget, Completeness, Forest, default_gates

_SHOWN_KEYS: Final = (keys.VERDICT, keys.FINDINGS, keys.SPANS_WITHHELD, keys.INPUT_TOKENS)
_WIDTH: Final = 80
_OPENING: Final = (
    "Three runs of one agent, which repairs a small program until its tests pass. Its model is scripted; its tools"
    " really read, write and start processes. Each run goes through a TracerProvider of OpenTelemetry that has a"
    " GateSpanProcessor, and each time the agent reports success. Which of the three may be believed?"
)
_CLOSING: Final = """\
For your own agent, put the gate where the BatchSpanProcessor is now:

    from spangate import GateSpanProcessor

    provider.add_span_processor(GateSpanProcessor(OTLPSpanExporter()))

What is recorded already can be judged, too:

    spangate check traces.jsonl"""


@dataclass(frozen=True, slots=True)
class Scene:
    """One run of the agent: what is special about it, and the gates that it meets."""

    name: str
    title: str
    story: str
    script: Sequence[Step]
    dispatch: Dispatch = here
    gates: Sequence[Gate] = default_gates()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a scene: the agent's last words, the verdict, and the spans that reached the exporter."""

    said: str
    verdict: Verdict
    exported: Sequence[ReadableSpan]


SCENES: Final = (
    Scene(
        "healthy",
        "A sound run",
        "The model asks for a tool, the tool runs, the model hears of the result, until the tests pass.",
        (RUN, READ, WRITE, RUN),
    ),
    Scene(
        "lost_context",
        "A lost context",
        "The tests run in a worker thread now, and nobody hands the trace context on to it. A backend would show three"
        " traces that know nothing of each other: an agent that never ran a test, and two tests without an agent.",
        (RUN, READ, WRITE, RUN),
        tests_in_a_bare_thread,
    ),
    Scene(
        "blown_budget",
        "A blown budget",
        "The model reads the same file again and again, and each turn sends all that went before. The tests pass in the"
        " end, at more than the 1,500 input tokens that a run may use here.",
        (RUN, READ, READ, READ, READ, WRITE, RUN),
        gates=(Completeness(), Forest(), Budget(max_input_tokens=1500)),
    ),
)


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="text for people (the default), json for scripts: one object a run.",
)
def command(form: str) -> None:
    r"""Let an agent run three times, and show what is exported each time.

    A sound run is exported whole. One that lost its context and one that blew its budget leave nothing but a verdict.
    Takes about a second, without network or key; what the agent writes, it writes to a temporary directory.

    \b
    Example:
      spangate demo

    JSON has one object a run: scene, said (the agent's last words), exported (names of spans), and what `spangate
    check --format json` says of a run.
    """
    if form == "json":
        for scene in SCENES:
            click.echo(json.dumps(_as_json(scene, play(scene))))
        return
    click.echo(textwrap.fill(_OPENING, _WIDTH) + "\n")
    for number, scene in enumerate(SCENES, 1):
        click.echo(_bold(f"{number}. {scene.title}\n"))
        click.echo(textwrap.fill(scene.story, _WIDTH) + "\n")
        _report(play(scene))
    click.echo(_bold("What now?\n"))
    click.echo(_CLOSING)


def play(scene: Scene) -> Outcome:
    """Let the agent run behind a gate, and return what came of it."""
    verdicts: list[Verdict] = []
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
    provider.add_span_processor(GateSpanProcessor(exporter, gates=scene.gates, on_verdict=verdicts.append))
    with tempfile.TemporaryDirectory() as directory, quiet_log():
        said = repair(provider.get_tracer("spangate.demo"), Path(directory), scene.script, scene.dispatch)
        provider.shutdown()
    if not verdicts:
        raise click.ClickException("nothing was traced: OTEL_SDK_DISABLED is set, which turns OpenTelemetry off")
    return Outcome(said, verdicts[0], exporter.get_finished_spans())


def _report(outcome: Outcome) -> None:
    """Show what was exported: the tree of a released run, or the span in its place with what it says."""
    verdict, exported = outcome.verdict, outcome.exported
    click.echo(f'The agent says:  "{outcome.said}"')
    if verdict.passed:
        click.echo(f"Exported:        all {counted(len(exported), 'span')}.\n")
        spans = sorted(read(exported).spans, key=lambda span: span.start_ns)
        text_tree(Run(verdict.run_id, spans[0], spans), verdict)
        return
    click.echo(f"Exported:        {counted(len(exported), 'span')} in the place of {verdict.spans_withheld}.\n")
    for span in exported:
        _show_verdict_span(span)
    click.echo(verdict_text(verdict, style=style_of(sys.stdout)) + "\n")


def _show_verdict_span(span: ReadableSpan) -> None:
    style = style_of(sys.stdout)
    click.echo(f"  {span.name}  {style(span.status.status_code.name, 'fail')}")
    for key in _SHOWN_KEYS:
        value = (span.attributes or {}).get(key)
        shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        click.echo(f"    {style(f'{key:24}', 'dim')}{shown}")
    click.echo()


def _bold(text: str) -> str:
    return text if style_of(sys.stdout) is plain else click.style(text, bold=True)


def _as_json(scene: Scene, outcome: Outcome) -> dict[str, object]:
    exported = [span.name for span in outcome.exported]
    return {"scene": scene.name, "said": outcome.said, "exported": exported, **as_json(outcome.verdict)}
