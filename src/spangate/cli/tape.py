"""``spangate tape``: looks into cassettes, checks them, and compares two."""

from __future__ import annotations

from typing import Final

import click

_FORM: Final = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="text for people (the default), json for scripts: one object a line.",
)


@click.group()
def command() -> None:
    """Look into cassettes: what was recorded by spangate.tape, and what a replay gives.

    \b
    Examples:
      spangate tape show run.jsonl
      spangate tape verify tests/cassettes/*.jsonl
      spangate tape diff before.jsonl after.jsonl
    """  # noqa: D301  click wants the backspace itself, which keeps the lines below it


@command.command()
@click.argument("file", metavar="FILE")
@_FORM
def show(file: str, form: str) -> None:
    """Show what was decided, and what came of it, in the order in which it was recorded.

    The exit code is 0, or 2 if the file cannot be read. JSON has one object a decision: line, key, kind, payload,
    outcome (value, chunks, partial, error).
    """
    from spangate.cli._cassettes import read_or_exit, show_json, show_text

    cassette = read_or_exit(file)
    (show_json if form == "json" else show_text)(file, cassette)


@command.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@_FORM
def verify(files: tuple[str, ...], form: str) -> None:
    """Check that every line of a cassette is sound: its header, its form, and that its key is that of its payload.

    Where secrets were taken out of a payload, its key cannot be computed again, and that is said. The exit code is 0 if
    all are sound, 1 if one is not (a line that was changed, or cut off by a crash), 2 if one cannot be read.
    """
    from spangate.cli._cassettes import verified

    raise SystemExit(max(verified(file, form) for file in files))


@command.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@_FORM
def diff(before: str, after: str, form: str) -> None:
    """Say where two cassettes part: the first decision that one has and the other has not, and how many there are.

    The order of decisions does not matter, since what runs in parallel comes in any. The exit code is 0 if both hold
    the same, 1 if they do not, 2 if one cannot be read.
    """
    from spangate.cli._cassettes import compared, read_or_exit

    raise SystemExit(compared((before, read_or_exit(before)), (after, read_or_exit(after)), form))
