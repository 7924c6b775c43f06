"""The same tests, on the same files, after they have failed: the ledger blocks the repeat, and allows it after an edit.

Two agents work on a broken file. One edits it before it runs the tests again; the other only tries once more.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from spangate.ledger import RetryBlocked, RetryLedger

TEST = "from prices import total; raise SystemExit(total(2) != 4)"


def repository(directory: Path) -> Path:
    (directory / "prices.py").write_text("def total(n): return n\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=directory, check=True)  # noqa: S607  whichever git there is
    return directory


def run_tests(ledger: RetryLedger, directory: Path) -> None:
    with ledger.guard("python", ["-c", TEST], version="3") as call:
        done = subprocess.run([sys.executable, "-B", "-c", TEST], cwd=directory, check=False)
        call.exit(done.returncode)
    print(f"tests: exit {done.returncode}")


for edits in (True, False):
    with tempfile.TemporaryDirectory() as files, tempfile.TemporaryDirectory() as place:
        repo = repository(Path(files))
        ledger = RetryLedger(Path(place) / "calls.db", repo=repo)
        run_tests(ledger, repo)
        if edits:
            (repo / "prices.py").write_text("def total(n): return 2 * n\n")
        try:
            run_tests(ledger, repo)
        except RetryBlocked as refused:
            earlier = refused.veto.earlier
            print(f"blocked: the same call failed with exit code {earlier.exit_code}, on this very tree")
        ledger.close()
