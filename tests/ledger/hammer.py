"""Makes many calls under a ledger. ``hammer.py FILE WHO NUMBER``; it waits for a line before it begins."""

from __future__ import annotations

import sys

from spangate.ledger import RetryLedger

path, who, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
ledger = RetryLedger(path, session=who, busy_timeout_s=100)
sys.stdout.write("ready\n")
sys.stdout.flush()
sys.stdin.readline()
for step in range(number):
    with ledger.guard("tool", {"who": who, "step": step}) as call:
        call.exit(step % 2)
