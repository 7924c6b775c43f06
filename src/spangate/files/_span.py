"""The spans of :mod:`spangate.files`: opened before anything is touched, and after the working tree was looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import PurePosixPath
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.trace import Span

from spangate._hosts import before_writing
from spangate._journal import OP, OUTPUTS
from spangate._paths import PathError, top_of
from spangate.process._tracer import Choice

_choice: Final = Choice("spangate")
use_provider: Final = _choice.use_provider


@contextmanager
def opened(name: str, attributes: Mapping[str, Any]) -> Iterator[Span]:
    """Have what is done inside be a span. What is raised there ends it as failed, and goes on."""
    inside = trace.get_current_span().get_span_context()
    if inside.is_valid:
        before_writing(inside.trace_id)
    with _choice.tracer().start_as_current_span(name, attributes=attributes) as span:
        yield span


@contextmanager
def tool(repo: str | PathLike[str], *, outputs: Iterable[str], name: str = "files.tool") -> Iterator[Span]:
    """Open a span for something that writes files by itself, as a shell command does, and that says which.

    What changes in the tree while the run goes on, and matches, is owned by it; what is in the files is not checked.

    Args:
        repo: A directory in the working tree.
        outputs: Patterns as in a ``.gitignore``: ``*.pyc`` in every directory, ``dist/*.js`` from the top,
            ``build/`` with all that is below it.
        name: What the span is called.

    Yields:
        The span, to be written on.

    Raises:
        PathError: ``repo`` is in no repository, or a pattern leads out of it.
        TypeError: ``outputs`` is one text.
    """
    if isinstance(outputs, str):
        raise TypeError(f"outputs wants several patterns, as [{outputs!r}]")
    patterns = [*outputs]
    top = top_of(repo)
    for pattern in patterns:
        path = PurePosixPath(pattern)
        if not pattern or path.is_absolute() or ".." in path.parts:
            raise PathError(f"the pattern {pattern!r} is not for files inside of {top}")
    with opened(name, {OP: "run", OUTPUTS: patterns}) as span:
        yield span
