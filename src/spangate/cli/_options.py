"""The options that commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _gates(_ctx: click.Context, _parameter: click.Parameter, path: str | None) -> Any:
    """Turn the policy file into gates. Both are imported here: they are of no use to somebody who asks for help."""
    from spangate._errors import PolicyError
    from spangate._pinned import with_environment
    from spangate._policy import load_policy
    from spangate.gates import default_gates

    if path is None:
        return with_environment(default_gates(), os.environ)
    try:
        return with_environment(load_policy(path), os.environ)
    except PolicyError as error:
        raise click.BadParameter(str(error)) from None


policy_option: Final = click.option(
    "--policy", "gates", metavar="FILE", callback=_gates, help="Judge by this policy (TOML), not by the defaults."
)
_ALL: Final = (
    click.argument("files", nargs=-1, required=True, metavar="FILE..."),
    policy_option,
    click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json"]),
        default="text",
        help="text for people (the default), json for scripts: one object a line.",
    ),
)


def recorded_runs_options(command: _Command) -> _Command:
    """Give a command the files, the policy and the format."""
    for option in reversed(_ALL):
        command = option(command)
    return command
