"""A loop that you write yourself: it has a bound, closes each iteration, and says why it halted.

``python examples/loop.py`` runs it; ``--broken`` leaves it by a bare break, so that nobody knows why it ended.
"""

import sys

import spangate
from spangate import strict_gates
from spangate.testing import GatedProvider

TOOL = {"name": "look", "parameters": {"type": "object", "properties": {"shelf": {"type": "integer"}}}}


def look(shelf: int) -> str:
    """Look on a shelf."""
    return {1: "flour", 2: "salt", 3: "eggs"}[shelf]


def model(messages: list[dict[str, str]]) -> tuple[str, int, int]:
    """Stand in for a model: it looks on one shelf after the other. Returns its answer and what it used."""
    found = "eggs" in messages[-1]["content"]
    return "In the last one." if found else f"look {len(messages)}", 20 * len(messages), 4


def find_eggs(provider: GatedProvider, *, is_broken: bool) -> None:
    """Ask the model and do what it says until it has an answer."""
    messages = [{"role": "user", "content": "where is breakfast?"}]
    with spangate.run("find breakfast", max_iters=5, name="cook", tracer_provider=provider) as run:
        for it in run.iterations():
            with it.llm("small", messages, tools=[TOOL], temperature=0.0) as call:
                answer, used, written = model(messages)
                call.answer(answer, input_tokens=used, output_tokens=written)
            if not answer.startswith("look"):
                if is_broken:
                    break
                run.halt("done")
            else:
                found = it.call(look, {"shelf": int(answer.split()[1])}, schema=TOOL, caused_by=[call])
                messages.append({"role": "user", "content": found})


with GatedProvider(strict_gates()) as provider:  # a test's provider; in a program: its own, or the global one
    find_eggs(provider, is_broken="--broken" in sys.argv)
(verdict,) = provider.verdicts
print(verdict.verdict, *(f"{found.code}: {found.detail}" for found in verdict.failures))
for span in provider.released:
    told = {key: value for key, value in span.attributes.items() if key in ("agent.iteration", "agent.halt_reason")}
    print(" ", span.name, *told.values())
for span in provider.refused:
    print(" ", span.name)
