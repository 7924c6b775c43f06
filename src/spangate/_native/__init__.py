"""Your own loop: a run with a bound, its iterations, and for what reason it halts (``spangate.run``)."""

from __future__ import annotations

import re
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import TracerProvider

from spangate._canonical import text_hash
from spangate._native.agent_run import AgentRun
from spangate._native.course import Course
from spangate._native.loop import Loop
from spangate._native.recorder import Recorder
from spangate._settings import check_ceiling
from spangate._version import __version__

_SCOPE: Final = "spangate"
_RUN_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def run(
    goal: str | None = None,
    *,
    max_iters: int | None = None,
    name: str | None = None,
    run_id: str | None = None,
    record_content: bool = False,
    tracer_provider: TracerProvider | None = None,
) -> AgentRun:
    """Open a run of an agent: ``with spangate.run(goal="…", max_iters=8) as run:``, or ``async with``.

    Every span that starts inside belongs to it, and so does, in this process, every span that carries the run's id as
    baggage (``spangate.run_id``), whatever its trace. A run inside a run is a part of the outer one.

    Args:
        goal: What the run is for. Its hash is recorded, not the text.
        max_iters: How many iterations it may take. Only a run that has none of its own needs no bound.
        name: The name of the agent.
        run_id: An id that no other run has, of letters, digits, ``-`` and ``_``; None for a new one. Inside another
            run it has that one's.
        record_content: Record messages, arguments and results as they are, not their hashes alone.
        tracer_provider: Records the spans; None: the global one. Without an SDK nothing is recorded, and nothing fails.

    Raises:
        ValueError: a bound or an id that is none.
    """
    check_ceiling("max_iters", max_iters)
    if max_iters == 0:
        raise ValueError("max_iters is 0: a loop takes at least one iteration")
    if run_id is not None and not _RUN_ID.fullmatch(run_id):
        raise ValueError(f"run_id is {run_id!r}: write 1 to 64 letters, digits, '-' or '_'")
    facts = {
        "gen_ai.agent.name": name,
        "agent.goal_hash": None if goal is None else text_hash(goal),
        "agent.max_iters": max_iters,
    }
    tracer = trace.get_tracer(_SCOPE, __version__, tracer_provider)
    recorder = Recorder(tracer, records_content=record_content)
    return AgentRun(Loop(Course(max_iters), recorder, facts, run_id))
