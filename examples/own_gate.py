"""A gate of your own is a function from a run to findings. This one refuses every run in which a shell was used.

Its code is yours to choose; the text before the dot names the gate. A code that no policy gives a level fails.
"""

from collections.abc import Iterator

from spangate import Finding, Run, default_gates
from spangate.testing import GatedProvider


def house(run: Run) -> Iterator[Finding]:
    for tool in run.of_role("tool"):
        if tool.attributes.get("gen_ai.tool.name") == "shell":
            yield Finding("house.no_shell", tool, "no agent of ours may use a shell")


gates = [*default_gates(), house]  # in your program: GateSpanProcessor(exporter, gates=gates)

for name in ("search", "shell"):
    with GatedProvider(gates) as provider:
        tracer = provider.get_tracer("kitchen")
        with tracer.start_as_current_span("invoke_agent cook", attributes={"gen_ai.operation.name": "invoke_agent"}):
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
            tracer.start_span(f"execute_tool {name}", attributes=attributes).end()
    [verdict] = provider.verdicts
    print(name, verdict.verdict, *(f"{finding.code}: {finding.detail}" for finding in verdict.failures), sep="  ")
