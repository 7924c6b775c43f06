"""``python -m tests.benchmarks [--check] [--json] [NAME…]``: one table of everything that was asked for."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tests.benchmarks import (
    check,
    collector,
    diff,
    hooks,
    judge,
    memory,
    pipeline,
    receiver,
    root_end,
    slow_exporter,
    spawn,
    stall,
    tape,
    wire,
    worktree,
)
from tests.benchmarks._machine import facts
from tests.benchmarks._rows import Row, table

BENCHMARKS: Final[Mapping[str, Callable[[], Iterator[Row]]]] = {
    "hooks": hooks.rows,
    "pipeline": pipeline.rows,
    "collector": collector.rows,
    "root_end": root_end.rows,
    "slow_exporter": slow_exporter.rows,
    "memory": memory.rows,
    "judge": judge.rows,
    "stall": stall.rows,
    "spawn": spawn.rows,
    "wire": wire.rows,
    "receiver": receiver.rows,
    "check": check.rows,
    "tape": tape.rows,
    "diff": diff.rows,
    "worktree": worktree.rows,
}


def main() -> int:
    """Run what was asked for. Returns 1 if a limit was asked to be held and was not."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--check", action="store_true", help="exit with 1 if one falls short of its limit")
    parser.add_argument("--json", action="store_true", help="one object for the machine, then one a line")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"{unknown[0]!r} is none of {', '.join(BENCHMARKS)}")
    machine = facts()
    found: list[Row] = []
    for name in arguments.names or BENCHMARKS:
        sys.stderr.write(f"{name} …\n")  # all of them take minutes
        found += BENCHMARKS[name]()
    if arguments.json:
        lines = [json.dumps(machine), *(json.dumps(row.as_dict()) for row in found)]
    else:
        lines = [f"{name}: {value}" for name, value in machine.items()] + ["", table(found)]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(arguments.check and not all(row.holds for row in found))


if __name__ == "__main__":
    sys.exit(main())
