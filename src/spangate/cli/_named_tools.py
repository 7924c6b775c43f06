"""Tools that a policy names, and whether any run has them: a mistyped name changes nothing, and nobody would see it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from spangate._dialects import tool_name
from spangate._names import gate_name
from spangate._records import Gate
from spangate._run import Run
from spangate._units import shown


class NamedTools:
    """The names of tools in the settings of gates, as long as no run has shown one.

    Args:
        gates: Those that name tools do so in ``tools_named``; ``*`` stands for any text.
    """

    def __init__(self, gates: Iterable[Gate]) -> None:
        self._unseen = {(gate_name(gate), name): None for gate in gates for name in getattr(gate, "tools_named", ())}

    def see(self, run: Run) -> None:
        """Look at the tools of a run."""
        if self._unseen:
            names = {tool_name(span) for span in run.of_role("tool")}
            for gate, wanted in [*self._unseen]:
                if any(fnmatchcase(name, wanted) for name in names):
                    del self._unseen[gate, wanted]

    def complaints(self) -> Iterator[str]:
        """Yield what to say of those that no run has."""
        for gate, name in self._unseen:
            yield f"note: the policy names the tool {shown(name)} ({gate}), and no run has one of that name"
