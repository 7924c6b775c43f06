"""Where the time of a run went, and a ceiling on what no model call, tool or program accounts for.

With ``--broken`` the agent waits between its calls, and no span says for what: the run is refused.
"""

import sys
import time

from spangate import default_gates
from spangate.gates import Timing
from spangate.testing import GatedProvider

GATES = [Timing(max_untraced_fraction=0.5) if isinstance(gate, Timing) else gate for gate in default_gates()]

with GatedProvider(GATES, clock=time.time_ns) as provider:
    tracer = provider.get_tracer("kitchen")
    with tracer.start_as_current_span("invoke_agent cook", attributes={"gen_ai.operation.name": "invoke_agent"}):
        for name, operation in (("chat small", "chat"), ("execute_tool bake", "execute_tool"), ("chat small", "chat")):
            with tracer.start_as_current_span(name, attributes={"gen_ai.operation.name": operation}):
                time.sleep(0.05)
            if "--broken" in sys.argv:
                time.sleep(0.1)

(verdict,) = provider.verdicts
print(verdict.verdict, *(f"{finding.code}: {finding.detail}" for finding in verdict.failures))
