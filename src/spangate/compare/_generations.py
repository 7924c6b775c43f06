"""Whether two runs may be compared at all: whether both asked the model the same to begin with.

Only the first call of each agent has to match: what comes later holds the results of tools, and is listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from spangate import _keys as keys
from spangate._names import stable_name
from spangate._records import Span
from spangate._run import Run
from spangate.compare._joining import JoinedBy, join
from spangate.compare._requests import Asked, Request, requests_of
from spangate.compare._results import results_of

Reason: TypeAlias = Literal[
    "no_generations", "missing_model", "missing_prompt", "other_source", "prompt", "tool_schema", "model", "decoding"
]

REASONS: Final[Mapping[Reason, str]] = {
    "no_generations": "a run has no model call",
    "missing_model": "a model call does not name its model",
    "missing_prompt": "the prompt of a model call is not known",
    "other_source": "what was asked is known from different sources, whose hashes do not compare",
    "prompt": "the prompt changed: another experiment",
    "tool_schema": "the tools that are offered changed: another action surface",
    "model": "the model changed: routing",
    "decoding": "temperature or another parameter changed: decoding",
}
"""Why two runs cannot be compared, in the order in which reasons are told."""
_CLASSES: Final[Mapping[str, Reason]] = {
    keys.PROMPT_TEXT_HASH: "prompt",
    keys.TOOL_SCHEMA_HASH: "tool_schema",
    keys.REQUEST_MODEL: "model",
    keys.REQUEST_TEMPERATURE: "decoding",
    keys.FINGERPRINT_PARAMS_HASH: "decoding",
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two model calls that stand for each other.

    Attributes:
        a: The span of the call in the first run; None where the second has one more.
        b: The same in the second run.
        first: True for the first call of an agent, which has to match.
        results: ``ok`` alone; or ``missing_model``, ``missing_prompt``, ``other_source``, ``mismatch:<key>`` for each
            stamped key that differs; or ``count`` for a call without a counterpart.
    """

    a: Span | None
    b: Span | None
    first: bool
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs asked of the model, call by call.

    Attributes:
        pairs: Every call with its counterpart, agent by agent.
        joined_by: How counterparts were found.
        reasons: Why the runs cannot be compared, of :data:`REASONS` and in that order; empty if they can.
        declared: Models that came from the configuration in either run: declared, not observed.
        path: True if the runs made other calls of models or tools: where nothing else differs, an agent that went
            another way, the one thing that a diff is worth the while for.
    """

    pairs: tuple[Pair, ...]
    joined_by: JoinedBy
    reasons: tuple[Reason, ...]
    declared: tuple[str, ...] = ()
    path: bool = False

    @property
    def comparable(self) -> bool:
        """True if the runs may be compared."""
        return not self.reasons

    @property
    def later(self) -> tuple[Pair, ...]:
        """The pairs of later calls that differ, which is no reason against comparing."""
        return tuple(pair for pair in self.pairs if not pair.first and pair.results != ("ok",))


def compare(a: Run, b: Run, *, model_from_config: str | None = None) -> Comparison:
    """Say whether two runs may be compared, and what differs in what they asked. Pure, and linear in the spans.

    Args:
        a: One run. Its spans have their roles, as those of a recording and of a gate have.
        b: The other.
        model_from_config: The model of calls that name none, as a policy or ``AGENT_MODEL_ID`` declares it.
    """
    ours, theirs = requests_of(a, model_from_config), requests_of(b, model_from_config)
    if not ours or not theirs:
        return Comparison((), "position", ("no_generations",))
    joined_by, joined = join(ours, theirs)
    pairs: list[Pair] = []
    found: set[str] = set()
    for before, after, first in joined:
        results = results_of(before, after)
        spans = [None if one is None else one.span for one in (before, after)]
        pairs.append(Pair(spans[0], spans[1], first, results))
        found.update(_reasons(results, first))
    reasons = tuple(reason for reason in REASONS if reason in found)
    declared = {str(one.facts[keys.REQUEST_MODEL]) for one in _declared([*ours, *theirs])}
    return Comparison(tuple(pairs), joined_by, reasons, tuple(sorted(declared)), _path(a) != _path(b))


def _reasons(results: Sequence[str], first: bool) -> Iterator[str]:  # noqa: FBT001  a field of the pair
    """Turn results into reasons. Of later calls only what nobody could compare by is one."""
    for result in results:
        key = result.partition(":")[2]
        if result.startswith("missing"):
            yield result
        elif first and result != "ok":
            yield _CLASSES[key] if key else result


def _declared(requests: Sequence[Request]) -> Iterator[Asked]:
    for request in requests:
        yield from (one for one in request.seen if one.declared and keys.REQUEST_MODEL in one.facts)


def _path(run: Run) -> Counter[tuple[str, str]]:
    """Count what was called, by name."""
    called: Counter[tuple[str, str]] = Counter()
    for (role, name), number in Counter(
        (span.role, span.name) for span in run.of_role("generation", "tool", "process")
    ).items():
        called[role, stable_name(name)] += number
    return called
