"""The command line. Every command is a module of its own, imported when it is asked for: so ``--help`` stays quick."""

from __future__ import annotations

import sys

NEEDS_EXTRA = "spangate: the command line needs click. Install it with: pip install 'spangate[cli]'"


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        import click  # noqa: F401 - the extra may not be installed, which is told in one line instead of a traceback
    except ImportError:
        print(NEEDS_EXTRA, file=sys.stderr)
        sys.exit(2)
    from spangate.cli._group import spangate

    spangate()
