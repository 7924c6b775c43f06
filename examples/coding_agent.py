"""A coding agent that repairs a program in a git repository, under most of the gates at once.

    python examples/coding_agent.py                      judged in its own process
    spangate run -- python examples/coding_agent.py      judged from outside, whatever it says of itself

The model is a script. The rest is real: files are written through traced tools, ruff formats, unittest tests, a linter
and, if ``npm install --prefix examples/coding_agent_tools`` was run, a program in Node.js record spans of their own.
Each of these switches breaks it in one way, and the run is refused:

    --behind-the-tools   a file changes, and no tool says so        worktree.ghost
    --no-halt            the loop is left without a reason          halt.missing
    --lie                the tests fail, and their tool is happy    exits.tool_disagrees
    --repeat             the same tests again, and nothing changed  retries.repeated_failure
    --unordered          one file written twice, in whatever order  causality.unordered_writers
    --spend              more tokens than the run may use           budget.ceiling
    --ignore-context     the linter starts a trace of its own       forest.stray_root
"""

import shutil
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import spangate
from spangate import GateSpanProcessor, attach_parent, default_gates, files, process
from spangate.gates import Budget, Exits, Policy, Worktree

TOOLS = Path(__file__).with_name("coding_agent_tools")
NODE, RUFF = shutil.which("node"), shutil.which("ruff")
BROKEN, MENDED = "def total(n):\n    return n\n", "def total(n): return 2*n\n"
TEST = "import unittest\nfrom prices import total\n\n\nclass T(unittest.TestCase):\n"
TEST += "    def test_total(self):\n        self.assertEqual(total(2), 4)\n"


def has(switch: str) -> bool:
    """Say whether a switch was given."""
    return f"--{switch}" in sys.argv


def repository(root: Path) -> None:
    """Make a git repository with a broken program and its test."""
    (root / "prices.py").write_text(BROKEN)
    (root / "test_prices.py").write_text(TEST)
    for words in ("init -q", "add .", "-c user.name=cook -c user.email=cook@example.com commit -qm one"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)  # noqa: S607  whichever git there is


class Agent:
    """Asks its model what to do, and does it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.did: list[str] = []
        self.messages: list[dict[str, str]] = [{"role": "user", "content": "make the tests pass"}]
        self.plan = ["test", "test"] if has("repeat") else ["test"]
        self.plan += ["write", *(["format"] if RUFF else []), "test", "lint"]
        self.plan += ["accept"] if NODE and (TOOLS / "node_modules").is_dir() else []

    def work(self) -> None:
        """Go on until the plan is done."""
        done: list[spangate.Work] = []
        with spangate.run("make the tests pass", max_iters=9, name="coder", record_content=True) as run:
            for it in run.iterations():
                with it.llm("scripted", self.messages, caused_by=done[-1:]) as call:
                    step = self.plan.pop(0) if self.plan else "stop"
                    used = 9_000 if has("spend") else 90
                    call.answer(step, input_tokens=used, output_tokens=len(step))
                if step == "stop":
                    if has("no-halt"):
                        break
                    run.halt("done")
                else:
                    for _ in range(2 if step == "write" and has("unordered") else 1):
                        with it.tool(step, {"path": "prices.py"}, caused_by=[call]) as tool:
                            tool.result(self.do(step, tool))
                    self.messages.append({"role": "user", "content": step})
                    self.did.append(step)
                    done.append(tool)

    def do(self, step: str, tool: "spangate.ToolCall") -> str:
        """Do one thing, and return what came of it."""
        if step == "write":
            if has("behind-the-tools"):
                (self.root / "notes.txt").write_text("nobody tells of this\n")
            return files.write(self.root, "prices.py", MENDED)
        commands = {
            "test": [sys.executable, "-B", "-m", "unittest", "-q"],
            "lint": [sys.executable, TOOLS / "lint.py", *sys.argv[1:]],
            "format": [RUFF, "format", "--quiet", "prices.py"],
            "accept": [NODE, TOOLS / "test.js"],
        }
        with files.tool(self.root, outputs=["prices.py"]) if step == "format" else nullcontext():
            ended = subprocess.run(commands[step], cwd=self.root, capture_output=True, text=True, check=False)
        if ended.returncode and not has("lie"):
            tool.fail("TestsFail")
        return f"exit {ended.returncode}"


def main() -> int:
    """Let the agent work under a gate, and say what the gate thinks of it."""
    verdicts: list[spangate.Verdict] = []
    with tempfile.TemporaryDirectory() as directory:
        repository(Path(directory))
        own = [Budget(max_input_tokens=20_000), Exits(process_tools=("test",)), Worktree(repo=directory)]
        kept = [gate for gate in default_gates() if type(gate) not in map(type, own)]
        strict = Policy(levels={"retries.repeated_failure": "fail"})
        settings = {"gates": [*kept, *own, strict], "on_verdict": verdicts.append, "receiver": process.Receiver()}
        provider = TracerProvider()
        provider.add_span_processor(GateSpanProcessor(InMemorySpanExporter(), **settings))  # or to your collector
        trace.set_tracer_provider(provider)
        process.instrument()
        attach_parent()
        agent = Agent(Path(directory))
        agent.work()
        provider.shutdown()
    print(f"All done: {', '.join(agent.did)}.")
    for verdict in verdicts:  # none where it is judged from outside
        print(verdict.verdict, *(finding.code for finding in verdict.failures))
    return int(any(not verdict.passed for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
