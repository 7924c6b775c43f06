"""The group of all commands, by name; none of them is imported before it is asked for."""

from __future__ import annotations

import importlib
import sys
from typing import Final

import click

from spangate._version import __version__

COMMANDS: Final = {
    "run": "Run an agent command, and judge what it records.",
    "check": "Judge recorded runs.",
    "compare": "Say whether two recorded runs asked the same, so that they may be compared.",
    "diff": "Say what changed between two recordings, and whether all of it is allowed.",
    "tree": "Show recorded runs as trees, with what is wrong in them.",
    "tape": "Look into recorded decisions: what a replay gives.",
    "report": "Write recorded runs as a page to read.",
    "ledger": "See what tools were called with, and why a call is blocked.",
    "demo": "See the gate at work on a small agent, without network or key.",
}
"""Every command with the sentence that ``spangate --help`` shows. It is ``command`` in the module of its name."""


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click calls it
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        found = importlib.import_module(f"spangate.cli.{cmd_name}").command
        return found if isinstance(found, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="spangate")
def spangate() -> None:
    """Decide whether runs of AI agents may be believed.

    \b
    Examples:
      spangate run -- python agent.py          judge a command and the programs that it starts
      spangate check traces.jsonl              judge every run in a recording
      spangate check --format json *.jsonl     one JSON object a run, for a script
      spangate tree traces.jsonl               see what happened and where it broke
    """  # noqa: D301  click wants the backspace itself, which keeps the lines below it
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot write a name must not end a check
