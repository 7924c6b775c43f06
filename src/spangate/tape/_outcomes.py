"""What came of a decision: a value, what came in pieces, or an error; as it stands in a cassette and as it was."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spangate.tape._errors import ReplayedError, TapeError
from spangate.tape._values import read, why_no_json, written

_SAFE: Final = (
    *("ArithmeticError", "AssertionError", "AttributeError", "BlockingIOError", "BrokenPipeError", "ConnectionError"),
    *("ConnectionAbortedError", "ConnectionRefusedError", "ConnectionResetError", "EOFError", "Exception"),
    *("FileExistsError", "FileNotFoundError", "IndexError", "InterruptedError", "IsADirectoryError", "KeyError"),
    *("LookupError", "NotADirectoryError", "NotImplementedError", "OSError", "OverflowError", "PermissionError"),
    *("ProcessLookupError", "RuntimeError", "TimeoutError", "TypeError", "ValueError", "ZeroDivisionError"),
)
"""Errors that are made again as they were. Nothing that is not in this list is ever called by what stands in a file."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a decision.

    Attributes:
        value: What it returned; of what came in pieces, what came before them.
        chunks: The pieces in their order; None where there are none.
        is_partial: True if nobody waited for the rest of them.
        error: The error that it raised, or that ended the pieces; None if it raised none.
    """

    value: Any = None
    chunks: Sequence[Any] | None = None
    is_partial: bool = False
    error: BaseException | None = None


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as it stands in a cassette."""
    told: dict[str, Any] = {}
    if outcome.error is None or outcome.chunks is not None:
        told["value"] = written(outcome.value)
    if outcome.chunks is not None:
        told["chunks"] = [written(chunk) for chunk in outcome.chunks]
    if outcome.is_partial:
        told["partial"] = True
    if outcome.error is not None:
        told["error"] = _error_json(outcome.error)
    return told


def from_json(told: Mapping[str, Any]) -> Outcome:
    """Return what :func:`as_json` was given; errors that are not safe to make become :class:`ReplayedError`.

    Raises:
        ValueError: it is no outcome.
    """
    chunks, error = told.get("chunks"), told.get("error")
    if not (chunks is None or isinstance(chunks, list)):
        raise ValueError("chunks are no array")
    return Outcome(
        value=read(told.get("value")),
        chunks=None if chunks is None else [read(chunk) for chunk in chunks],
        is_partial=bool(told.get("partial", False)),
        error=None if error is None else _error(error),
    )


def why_not_kept(value: Any) -> TapeError:
    """Make the error of a result that cannot be kept."""
    return TapeError(f"a result has to be JSON, or bytes, to be replayed (see dump and load): {why_no_json(value)}")


def _error_json(error: BaseException) -> dict[str, Any]:
    if isinstance(error, ReplayedError):
        return {"type": error.kind, "message": error.message}
    kind = type(error)
    told: dict[str, Any] = {"type": f"{kind.__module__}.{kind.__qualname__}", "message": str(error)}
    if kind.__module__ == "builtins" and all(isinstance(one, (str, int, float, bool)) for one in error.args):
        told["args"] = list(error.args)
    return told


def _error(told: Any) -> BaseException:
    if not isinstance(told, Mapping) or not isinstance(told.get("type"), str):
        raise ValueError("an error without its type")  # noqa: TRY004  of a file, not of a caller
    module, _, name = told["type"].rpartition(".")
    arguments = told.get("args")
    if module == "builtins" and name in _SAFE and isinstance(arguments, list):
        made: BaseException = getattr(builtins, name)(*arguments)
        return made
    return ReplayedError(told["type"], str(told.get("message", "")))
