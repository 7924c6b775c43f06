"""Where gates and whoever starts programs meet: who holds a span, whom an exit is told, who still has programs running.

Neither knows the other: a program that runs no children imports nothing for them, and one may start programs without
any gate.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from opentelemetry import baggage, context
from opentelemetry.context import Context

from spangate import _keys as keys
from spangate._records import Exit, Finding

if TYPE_CHECKING:  # every child imports this module, and reads no request
    from spangate._fingerprint import Stamps
    from spangate._fingerprint.overheard import Sent


class Host(Protocol):
    """Whoever holds live trees. Nothing here raises."""

    def tree_id_of(self, trace_id: int, span_id: int) -> str | None:
        """Return the id of the tree that holds a span, None if none here does."""

    def open_run(self, run_id: str, trace_id: int, span_id: int, *, is_own: bool) -> None:
        """Have what carries this run id belong to the run that a span opens, if a tree here holds it.

        The tree takes the id if it ``is_own``: made for this very run.
        """

    def has_open_run(self, run_id: str) -> bool:
        """Say whether a run with this id is open here."""

    def take_exit(self, row: Exit) -> None:
        """Keep an exit with the tree that holds its span, if one here does."""

    def take_note(self, trace_id: int, span_id: int, note: Finding) -> None:
        """Keep a finding with the tree that holds a span, if one here does."""

    def take_request(self, request: Sent) -> None:
        """Keep a request with the tree that holds the span it was sent in, if one here does."""

    def take_stamps(self, trace_id: int, span_id: int, stamps: Stamps) -> None:
        """Remember what was written on a live span, or had no room there, if a tree here holds it."""

    def watch_starts(self, trace_id: int, span_id: int) -> bool:
        """Have every span that starts in the tree of this one looked at; in every tree, if none here holds it.

        False if nothing is looked at any more.
        """


class Way(Protocol):
    """Whoever takes in what programs record. Nothing here raises."""

    def variables(self, trace_id: int, span_id: int, *, is_program: bool) -> Mapping[str, str]:
        """Return what tells a program where its spans are wanted; nothing where they are not.

        The span is the program's own or, if that has none (``is_program`` is False), the one that it is started in.
        """


_hosts: Final[list[weakref.ref[Host]]] = []
_ways: Final[list[weakref.ref[Way]]] = []
_hand_on: Final[list[weakref.WeakMethod[Callable[[], None]]]] = []
_ERRAND: Final = context.create_key("spangate-errand")
_looking: Final[list[weakref.WeakMethod[Callable[[int], None]]]] = []
_look_after: Final[list[Callable[[], None]]] = []


def announce(host: Host) -> None:
    """Have a host asked and told from now on, for as long as somebody else holds it."""
    _hosts.append(weakref.ref(host, _hosts.remove))


def _alive() -> list[Host]:
    return [host for reference in [*_hosts] if (host := reference()) is not None]


def run_id_of(trace_id: int, span_id: int) -> str | None:
    """Return the id of the tree that holds a span, which is what the programs of its run inherit. None: nobody does.

    Inside a run that the program has opened itself it is that run's, which the current context carries.
    """
    for host in _alive():
        tree_id = host.tree_id_of(trace_id, span_id)
        if tree_id is not None:
            carried = carried_run_id(None)
            return carried if carried is not None and host.has_open_run(carried) else tree_id
    return None


def open_run(run_id: str, trace_id: int, span_id: int, *, is_own: bool) -> None:
    """Tell every host that a span opens a run, by whose id it knows from now on what belongs to it."""
    for host in _alive():
        host.open_run(run_id, trace_id, span_id, is_own=is_own)


def with_run_id(run_id: str, around: Context) -> Context:
    """Return a context that carries the id of a run, as baggage."""
    return baggage.set_baggage(keys.RUN_ID, run_id, around)


def carried_run_id(inside: Context | None) -> str | None:
    """Return the id of the run that a context carries; None: the current one."""
    carried = baggage.get_baggage(keys.RUN_ID, inside)
    return carried if isinstance(carried, str) and carried else None


def open_way(way: Way) -> None:
    """Have programs told of a way back from now on, for as long as somebody else holds it."""
    _ways.append(weakref.ref(way, _ways.remove))


def way_back(trace_id: int, span_id: int, *, is_program: bool) -> Mapping[str, str]:
    """Return what tells a program where its spans are wanted (:class:`Way`); nothing where nobody takes them."""
    for way in [way for reference in [*_ways] if (way := reference()) is not None]:
        variables = way.variables(trace_id, span_id, is_program=is_program)
        if variables:
            return variables
    return {}


def as_errand(inside: Context) -> Context:
    """Mark a context: what runs in it was sent here by a run of the process that this one was started by."""
    return context.set_value(_ERRAND, True, inside)  # noqa: FBT003  a context value, not a flag of ours


def is_errand(inside: Context | None) -> bool:
    """Say whether what runs in a context was sent here."""
    return bool(context.get_value(_ERRAND, inside))


def hand_on_in_time(method: Callable[[], None]) -> None:
    """Have a bound method called before this process, or a task in it, ends, and nobody asks again."""
    _hand_on.append(weakref.WeakMethod(method, _hand_on.remove))


def hand_on() -> None:
    """Have handed on what members of runs have recorded here."""
    for method in [method for reference in [*_hand_on] if (method := reference()) is not None]:
        method()


def looks_first(method: Callable[[int], None]) -> None:
    """Have a bound method called before something is written in a trace, given its id; it may wait for a moment."""
    _looking.append(weakref.WeakMethod(method, _looking.remove))


def before_writing(trace_id: int) -> None:
    """Wait until whoever looks at the working tree when a run begins has done so."""
    for method in [method for reference in [*_looking] if (method := reference()) is not None]:
        method(trace_id)


def tell_exit(row: Exit) -> None:
    """Tell every host that a program has ended."""
    for host in _alive():
        host.take_exit(row)


def tell_note(trace_id: int, span_id: int, note: Finding) -> None:
    """Tell every host a finding about the run that a span is in."""
    for host in _alive():
        host.take_note(trace_id, span_id, note)


def tell_request(request: Sent) -> None:
    """Tell every host of a request to a model."""
    for reference in _hosts:  # few, and whoever sends the request waits
        host = reference()
        if host is not None:
            host.take_request(request)


def tell_stamps(trace_id: int, span_id: int, stamps: Stamps) -> None:
    """Tell every host what was written on a live span."""
    for host in _alive():
        host.take_stamps(trace_id, span_id, stamps)


def watch_starts(trace_id: int, span_id: int) -> bool:
    """Have every host look at the spans that start in the tree of this one. False if there is none that does."""
    looking = [host.watch_starts(trace_id, span_id) for host in _alive()]
    return any(looking)


def look_after(look: Callable[[], None]) -> None:
    """Have ``look`` called whenever a run that is over waits for something: it may note the exits of programs."""
    _look_after.append(look)


def look_after_programs() -> None:
    """Note the exits of programs that nobody has waited for."""
    for look in _look_after:
        look()
