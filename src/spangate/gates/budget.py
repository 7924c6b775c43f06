"""Budget: what a run used, each model call counted once, against ceilings; and counts that cannot be right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from spangate._dialects import dialect_of
from spangate._records import Finding, Span, not_evaluable
from spangate._run import Run
from spangate._settings import check_amount, check_ceiling, check_table
from spangate._usage import Usage, count
from spangate._usage.breakdown import MODEL_LIMITS, TOOL_LIMITS, cost_sum, model_sums, models_of, tool_sums
from spangate._usage.sums import NO_CALLS, NO_TOOLS, Sum
from spangate._usage.tokens import UNSAID, reading_of

_PLAIN_CEILINGS: Final = (
    "max_input_tokens",
    "max_output_tokens",
    "max_tool_payload_bytes",
    "max_calls",
    "max_iterations",
)


class Ceiling(NamedTuple):
    """A limit that is set, what was used of it, and the code for a span that does not say its part."""

    what: str
    limit: float
    used: Sum[int] | Sum[float]
    code: str = "budget.usage_missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Holds a run to ceilings, and its token counts to what counts can be.

    Tokens are summed over the generation spans, each model call once; bytes over what tool spans say they returned. A
    ceiling of exactly what was used is enough. What is not recorded is not zero: a call that does not say its tokens
    fails the run where a ceiling asks for them, and so does an agent without any generation span. Only a call that
    failed may stay silent: the sum is then a floor, and below the ceiling the gate is not evaluable.

    Attributes:
        max_input_tokens: Ceiling on the input tokens of all model calls, cached ones included.
        max_output_tokens: Ceiling on their output tokens, reasoning included.
        max_tool_payload_bytes: Ceiling on the bytes of UTF-8 that all tools returned.
        max_calls: Ceiling on the number of model calls. Retries that are spans count.
        max_iterations: Ceiling on the number of iteration spans.
        max_cost: Ceiling on what the calls would cost by ``prices``: an estimate, the invoice is the truth. A cached
            token is priced like any other.
        prices: Prices of a million tokens by requested model, as ``{"model-a": {"input": 2.5, "output": 10.0}}``.
        per_model: ``max_input_tokens``, ``max_output_tokens`` and ``max_calls`` by requested model.
        per_tool: ``max_payload_bytes`` and ``max_calls`` by tool name.

    Raises:
        ValueError: a setting that is no ceiling, no price or no known name.
    """

    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    max_tool_payload_bytes: int | None = None
    max_calls: int | None = None
    max_iterations: int | None = None
    max_cost: float | None = None
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict, hash=False)
    per_model: Mapping[str, Mapping[str, int]] = field(default_factory=dict, hash=False)
    per_tool: Mapping[str, Mapping[str, int]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for setting in _PLAIN_CEILINGS:
            check_ceiling(setting, getattr(self, setting))
        for setting, columns in (("per_model", MODEL_LIMITS), ("per_tool", TOOL_LIMITS)):
            table = getattr(self, setting)
            check_table(setting, table, columns)
            for name, row in table.items():
                for limit, value in row.items():
                    check_ceiling(f"{setting}[{name!r}][{limit!r}]", value)
        check_table("prices", self.prices, ("input", "output"), all_wanted=True)
        for model, row in self.prices.items():
            for side, price in row.items():
                check_amount(f"prices[{model!r}][{side!r}]", price)
        if self.max_cost is not None:
            check_amount("max_cost", self.max_cost)
            if not self.prices:
                raise ValueError("max_cost needs prices: write the price of a million tokens for every model")

    @property
    def tools_named(self) -> Iterable[str]:
        """The names of tools in the settings."""
        return self.per_tool

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield what is over a ceiling, what is wrong with the counts, and what could not be evaluated."""
        usage = count(run)
        ceilings = self.ceilings(run)
        for what, limit, used, _ in ceilings:
            if used.known > limit:
                floor = "at least " if used.gap else ""
                yield Finding("budget.ceiling", run.root, f"{what}: {floor}{used.known} > {limit}")
        for problem in usage.problems:
            yield self._weighed(problem)
        yield from _missing(usage, ceilings)
        yield from self._unevaluated(run, usage, ceilings)
        if dialect_of(run.root).name == "native" and reading_of(run.root) is not UNSAID:
            yield Finding(
                "budget.root_usage", run.root, "the root carries token counts; they belong on its generations"
            )

    def ceilings(self, run: Run) -> Sequence[Ceiling]:
        """Return the ceilings that are set and that something in the run counts against, with what it used."""
        return [*self._ceilings(run, count(run))]

    @property
    def _limits_tokens(self) -> bool:
        return not (self.max_input_tokens is self.max_output_tokens is self.max_cost is None and not self.per_model)

    @property
    def _limits_tools(self) -> bool:
        return self.max_tool_payload_bytes is not None or bool(self.per_tool)

    def _ceilings(self, run: Run, usage: Usage) -> Iterator[Ceiling]:
        calls = Sum(len(usage.calls), usage.unseen or ("" if usage.calls else NO_CALLS))
        limits: list[tuple[str, float | None, Sum[int]]] = [
            ("input tokens", self.max_input_tokens, usage.input),
            ("output tokens", self.max_output_tokens, usage.output),
            ("model calls", self.max_calls, calls),
            ("iterations", self.max_iterations, Sum(len(run.of_role("iteration")))),
        ]
        yield from (Ceiling(what, limit, used) for what, limit, used in limits if limit is not None)
        if self.per_model or self.max_cost is not None:
            models = models_of(run, usage.calls)
            for model, row in self.per_model.items():
                sums = model_sums(models, model, calls.gap)
                yield from (Ceiling(f"{model}: {limit}", row[limit], sums[limit]) for limit in row)
            if self.max_cost is not None:
                yield Ceiling("cost", self.max_cost, cost_sum(models, self.prices, calls.gap))
        if self._limits_tools and usage.invocations:
            yield from self._tool_ceilings(run, usage)

    def _tool_ceilings(self, run: Run, usage: Usage) -> Iterator[Ceiling]:
        code = "budget.payload_missing"
        if self.max_tool_payload_bytes is not None:
            yield Ceiling("tool payload bytes", self.max_tool_payload_bytes, usage.payload, code)
        for tool, row in self.per_tool.items():
            sums = tool_sums(run, usage.invocations, tool)
            yield from (Ceiling(f"{tool}: {limit}", row[limit], sums[limit], code) for limit in row)

    def _weighed(self, problem: Finding) -> Finding:
        """Give a finding its level: under a token ceiling an answer for nothing is a count that was not taken."""
        is_call = problem.span is not None and problem.span.role == "generation"
        if problem.code == "budget.suspicious_zero" and is_call and self._limits_tokens:
            return replace(problem, level="fail")
        return problem

    def _unevaluated(self, run: Run, usage: Usage, ceilings: Sequence[Ceiling]) -> Iterator[Finding]:
        gaps = [f"{what}: {used.gap}" for what, limit, used, _ in ceilings if used.gap and used.known <= limit]
        if not ceilings and (not usage.calls or usage.input.missing or usage.output.missing):
            gaps.append(usage.input.gap or usage.output.gap)
        if gaps:
            yield not_evaluable("budget.not_evaluable", "; ".join(gaps))
        if not usage.calls and (self._limits_tokens or self.max_calls is not None):
            for agent in run.of_role("agent")[:1]:
                yield Finding("budget.usage_missing", agent, f"an agent, but {NO_CALLS}", "fail")
        if self._limits_tools and not usage.invocations:
            yield not_evaluable("budget.ceiling", NO_TOOLS)
        if self.max_iterations is not None and not run.of_role("iteration"):
            yield not_evaluable("budget.ceiling", "no span says what an iteration is")


def _missing(usage: Usage, ceilings: Sequence[Ceiling]) -> Iterator[Finding]:
    """Yield the spans that do not say their part, each once: a failure where a ceiling asks for it."""
    found: dict[tuple[str, Span], Finding] = {}
    for what, _, used, code in ceilings:
        for span in used.missing:
            found.setdefault((code, span), Finding(code, span, f"does not say its part of {what}", "fail"))
    code = "budget.usage_missing"
    for span in (*usage.input.missing, *usage.output.missing):
        found.setdefault((code, span), Finding(code, span, "does not say what it used"))
    return iter(found.values())
