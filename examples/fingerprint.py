"""Two runs can be compared only if each model call says what was asked of which model.

The instrumentation here records no prompt, as most do by default. What was asked is known all the same, since the
program says it in a block; `spangate.wire.instrument()` would read it from what is sent. With `--broken` nobody says
it, and since it is required, the run is refused.
"""

import sys

import spangate
from spangate import default_gates
from spangate.gates import Fingerprints
from spangate.testing import GatedProvider

SYSTEM, QUESTION = "You are a cook.", "What shall we have?"
SHOWN = ("fingerprint.source", "prompt.hash", "tool.schema_hash", "gen_ai.request.model", "fingerprint.tuple")


def ask(question: str) -> str:
    """Call a model, which is recorded as by an instrumentation with content capture off."""
    known = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small"}
    with tracer.start_as_current_span("chat small", attributes=known):
        return f"An answer to {question!r}."


gates = [Fingerprints(required=True) if isinstance(gate, Fingerprints) else gate for gate in default_gates()]
with GatedProvider(gates) as provider:
    tracer = provider.get_tracer("kitchen")
    with tracer.start_as_current_span("invoke_agent cook", attributes={"gen_ai.operation.name": "invoke_agent"}):
        if "--broken" in sys.argv:
            ask(QUESTION)
        else:
            with spangate.generation(system=SYSTEM, user=QUESTION, tools=[], temperature=0):
                ask(QUESTION)

verdict = provider.verdicts[0]
print(verdict.verdict, *(f"{finding.code}: {finding.detail}" for finding in verdict.failures))
for span in provider.released:
    for key in SHOWN:
        if key in span.attributes:
            print(f"{span.name}: {key} = {span.attributes[key]}")
