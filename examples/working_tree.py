"""Every change that a run makes in a git working tree has to be told by a span, and be what the span says.

Two files are written by tools, a third by a build that declares its output. With ``--broken`` one more is changed
behind the tools' back: the run is refused, and the file is named.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from spangate import default_gates, files
from spangate.gates import Worktree
from spangate.testing import GatedProvider

BUILD = "import pathlib; pathlib.Path('dist').mkdir(); pathlib.Path('dist/app.txt').write_text('built')"


def work(root: Path) -> GatedProvider:
    """Let an agent work in a repository, under a gate."""
    with GatedProvider([*default_gates(), Worktree(repo=root)]) as provider:
        files.use_provider(provider)  # without this: the global one
        tracer = provider.get_tracer("kitchen")
        with tracer.start_as_current_span("invoke_agent cook", attributes={"gen_ai.operation.name": "invoke_agent"}):
            files.write(root, "app.py", "print('goodbye')\n")
            files.write(root, "docs/app.md", "It says goodbye.\n")
            with files.tool(root, outputs=["dist/*"]):
                subprocess.run([sys.executable, "-c", BUILD], cwd=root, check=True)
            if "--broken" in sys.argv:
                (root / "config.toml").write_text("debug = true\n")
    return provider


with tempfile.TemporaryDirectory() as directory:
    subprocess.run(["git", "init", "--quiet", directory], check=True)  # noqa: S607  git as it is found
    (Path(directory) / "app.py").write_text("print('hello')\n")
    verdict = work(Path(directory)).verdicts[0]
    print(f"worktree: {verdict.gates['worktree']}")
    for finding in verdict.failures:
        print(f"{finding.code}: {finding.detail}")
