"""A policy is a file: ceilings, required gates, and which findings refuse a run.

The agent searches three times here, and policy.toml, which lies beside this file, allows two.
"""

from pathlib import Path

from spangate import load_policy
from spangate.testing import GatedProvider

gates = load_policy(
    Path(__file__).with_name("policy.toml")
)  # in your program: GateSpanProcessor(exporter, gates=gates)

with GatedProvider(gates) as provider:
    tracer = provider.get_tracer("library")
    with tracer.start_as_current_span("invoke_agent clerk", attributes={"gen_ai.operation.name": "invoke_agent"}):
        with tracer.start_as_current_span("chat small", attributes={"gen_ai.operation.name": "chat"}) as call:
            call.set_attributes({"gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 30})
        for _ in range(3):
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
            tracer.start_span("execute_tool search", attributes=attributes).end()

[verdict] = provider.verdicts
print(verdict.verdict, *(f"{finding.code}: {finding.detail}" for finding in verdict.findings), sep="\n")
