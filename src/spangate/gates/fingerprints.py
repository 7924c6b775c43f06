"""Fingerprints: every model call says what was asked of which model, so that two runs can be compared at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from spangate._fingerprint import named_model
from spangate._fingerprint.known import Lack, requests_of
from spangate._records import Finding, Level, Span, not_evaluable
from spangate._run import Run
from spangate._units import counted
from spangate._usage import count

_MOST_REASONS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprints:
    """Finds model calls whose model or prompt nobody knows, and agents without any model call.

    A call counts as known if any of its spans knows it, from whatever source: attributes, ``spangate.generation``, the
    completion hook, ``spangate.wire``. There is one finding a code, with a count, on the first such call.

    Attributes:
        required: Whether what is missing refuses the run, a model that is only declared among it. By default all of it
            is a warning.
        model_from_config: The model that counts, and is stamped, where a request names none; None: the environment
            variable ``AGENT_MODEL_ID``, if it is set where the gate runs.

    Raises:
        ValueError: a model that is no text, or an empty one.
    """

    required: bool = False
    model_from_config: str | None = None

    def __post_init__(self) -> None:
        model: Any = self.model_from_config
        if model is not None and named_model(model) is None:
            raise ValueError(f"model_from_config is {model!r}: write the name of a model, or None for no pin")

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield what is missing, one finding a code."""
        calls = count(run).calls
        if not len(calls):
            for agent in run.of_role("agent")[:1]:
                yield self._found("no_generations", agent, "an agent, and no model call of it in the trace")
            yield not_evaluable("fingerprints.not_evaluable", "the run has no generation spans")
            return
        requests = requests_of(calls)
        unnamed, declared = requests.unnamed, requests.declared
        if self.model_from_config is not None:
            unnamed, declared = Lack(), declared.with_others(unnamed)
        yield from self._lacking("missing_model", unnamed, requests.total, "no model is named")
        yield from self._lacking("model_from_config", declared, requests.total, "the model is declared, not observed")
        yield from self._lacking("missing_prompt", requests.unhashed, requests.total, "the prompt has no hash")

    def _lacking(self, what: str, lack: Lack, total: int, how: str) -> Iterator[Finding]:
        if lack.count:
            detail = f"in {lack.count:,} of {counted(total, 'model call')} {how}"
            reasons = "; ".join([*lack.reasons][:_MOST_REASONS])
            yield self._found(what, lack.first, f"{detail}: {reasons}" if reasons else detail)

    def _found(self, what: str, span: Span | None, detail: str) -> Finding:
        level: Level | None = "fail" if self.required else None
        return Finding(f"fingerprints.{what}", span, detail, level)
