"""What ``spangate tape`` says of cassettes."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import click

from spangate._units import counted, shown
from spangate.cli._console import FAILED, PASSED, UNREADABLE, say, style_of
from spangate.tape._cassette import Cassette, Decision, digest_of, kinds, read_cassette
from spangate.tape._errors import CassetteError
from spangate.tape._keys import tape_key
from spangate.tape._outcomes import as_json
from spangate.tape._values import first_difference, read

Named: TypeAlias = tuple[str, Cassette]
_WIDTH: Final = 96


def read_or_exit(file: str) -> Cassette:
    """Return a cassette; exits with 2 and a line on standard error if it cannot be read."""
    try:
        return read_cassette(file)
    except CassetteError as error:
        say(f"error: {error}")
        raise SystemExit(UNREADABLE) from None


def show_json(_file: str, cassette: Cassette) -> None:
    """Write one object a decision."""
    for decision in cassette.decisions:
        click.echo(json.dumps(_decision_json(decision)))


def _decision_json(decision: Decision) -> dict[str, Any]:
    return {
        "line": decision.line,
        "key": decision.key,
        "kind": decision.kind,
        "payload": dict(decision.payload),
        "redacted": decision.is_redacted,
        "outcome": as_json(decision.outcome),
    }


def show_text(file: str, cassette: Cassette) -> None:
    """Write two lines a decision: what was decided, and what came of it."""
    style = style_of(sys.stdout)
    header = cassette.header
    at = "" if header.commit is None else f", at commit {header.commit[:12]}{' with changes' if header.dirty else ''}"
    click.echo(f"{shown(file)}: {counted(len(cassette.decisions), 'decision')}{at}; digest {_digest(cassette)}")
    for number, decision in enumerate(cassette.decisions, 1):
        click.echo(f"{number:>4}  {style(decision.key, 'gap')}  {_short(decision.payload)}")
        click.echo(f"      {style('->', 'dim')} {_came_of(decision)}")
    if cassette.cut:
        click.echo(style(f"line {cassette.cut} is cut off: the recording broke off there", "warn"))


def _came_of(decision: Decision) -> str:
    outcome = decision.outcome
    error = "" if outcome.error is None else f"{type(outcome.error).__name__}: {outcome.error}"
    if outcome.chunks is None:
        return shown(error, _WIDTH) if error else _short(as_json(outcome).get("value"))
    ends = ", left early" if outcome.is_partial else f", then {shown(error)}" if error else ""
    return f"{counted(len(outcome.chunks), 'piece')}{ends}: {_short(as_json(outcome)['chunks'])}"


def _short(value: Any) -> str:
    return shown(json.dumps(value, ensure_ascii=False), _WIDTH)


def _digest(cassette: Cassette) -> str:
    return digest_of([decision.digest for decision in cassette.decisions])


def verified(file: str, form: str) -> int:
    """Check a cassette, say what is wrong with it, and return the exit code for it."""
    try:
        cassette = read_cassette(file)
    except CassetteError as error:
        code = FAILED if error.line else UNREADABLE
        _tell(file, form, [str(error)], None)
        return code
    wrong = [*_wrong(cassette)]
    _tell(file, form, wrong, cassette)
    return FAILED if wrong else PASSED


def _wrong(cassette: Cassette) -> Iterator[str]:
    for decision in cassette.decisions:
        if not decision.is_redacted and tape_key(decision.kind, read(decision.payload)) != decision.key:
            yield f"line {decision.line}: {decision.key} is not the key of its payload, which was changed"
    if cassette.cut:
        yield f"line {cassette.cut} is cut off: the recording broke off there"


def _tell(file: str, form: str, wrong: list[str], cassette: Cassette | None) -> None:
    decisions = () if cassette is None else cassette.decisions
    hidden = sum(decision.is_redacted for decision in decisions)
    if form == "json":
        told = {"file": file, "sound": not wrong, "wrong": wrong, "decisions": len(decisions), "redacted": hidden}
        click.echo(json.dumps(told))
        return
    style = style_of(sys.stdout)
    said = style("not sound", "fail") if wrong else style("sound", "pass")
    unchecked = f", {hidden} of them without secrets, whose keys cannot be computed" if hidden else ""
    click.echo(f"{shown(file)}: {said}: {counted(len(decisions), 'decision')}{unchecked}")
    for line in wrong:
        click.echo(f"  {shown(line, 500)}")


def compared(before: Named, after: Named, form: str) -> int:
    """Say where two cassettes part, and return the exit code."""
    gone, new = (_only_in(one, other) for one, other in ((before[1], after[1]), (after[1], before[1])))
    if form == "json":
        click.echo(json.dumps({"same": not (gone or new), "only_a": _keys(gone), "only_b": _keys(new)}))
    else:
        click.echo("\n".join(_parting(before, after, gone, new)))
    return FAILED if gone or new else PASSED


def _only_in(one: Cassette, other: Cassette) -> list[Decision]:
    there = Counter(decision.digest for decision in other.decisions)
    found = []
    for decision in one.decisions:
        if there[decision.digest]:
            there[decision.digest] -= 1
        else:
            found.append(decision)
    return found


def _keys(decisions: list[Decision]) -> list[str]:
    return [decision.key for decision in decisions]


def _parting(before: Named, after: Named, gone: list[Decision], new: list[Decision]) -> Iterator[str]:
    style = style_of(sys.stdout)
    if not (gone or new):
        yield f"{style('same', 'pass')}: {counted(len(before[1].decisions), 'decision')}"
        return
    yield style("different", "fail")
    for (file, cassette), only in ((before, gone), (after, new)):
        said = ", ".join(f"{kind} {count}" for kind, count in kinds(cassette.decisions))
        yield f"  {shown(file)}: {said or 'no decision'}; {len(only)} only here"
    if gone and new:
        yield f"  first in {shown(before[0])}: {_line(gone[0])}"
        yield f"  first in {shown(after[0])}: {_line(new[0])}"
        yield f"  they differ at {_difference(gone[0], new[0])}"
    else:
        file, only = (before[0], gone) if gone else (after[0], new)
        yield f"  first that is only in {shown(file)}: {_line(only[0])}"


def _line(decision: Decision) -> str:
    return f"line {decision.line}, {decision.key}  {_short(decision.payload)}"


def _difference(one: Decision, other: Decision) -> str:
    decided = first_difference(dict(one.payload), dict(other.payload))
    came = first_difference(as_json(one.outcome), as_json(other.outcome), "outcome")
    return shown(decided or came or "what was redacted", 300)
