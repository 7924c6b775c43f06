"""Tools as decisions: what of a call decides, and functions whose calls go through a tape."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from spangate._canonical import canonical_hash

if TYPE_CHECKING:
    from spangate.tape._tape import Tape

Schema: TypeAlias = Mapping[str, Any]
TOOL: Final = "tool"
_OWN: Final = frozenset({"self", "cls"})


@dataclass(frozen=True, slots=True)
class Options:
    """What is said of a tool; see :meth:`spangate.tape.Tape.tool`."""

    name: str | None
    schema: Schema | None
    ignore: Sequence[str]
    idempotency_key: str | None
    stub: Callable[..., Any] | None
    dump: Callable[[Any], Any] | None
    load: Callable[[Any], Any] | None


def taped(tape_of: Callable[[], Tape | None], options: Options) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator of functions whose calls go through the tape that there is then, or straight on."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        tool = Tool(function, options)
        act = options.stub or function

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            tape = tape_of()
            if tape is None:
                return function(*args, **kwargs)
            payload, key = tool.payload(args, kwargs)
            do = functools.partial(act, *args, **kwargs)
            return tape.call(TOOL, payload, do, idempotency_key=key, dump=options.dump, load=options.load)

        @functools.wraps(function)
        async def acall(*args: Any, **kwargs: Any) -> Any:
            tape = tape_of()
            if tape is None:
                return await function(*args, **kwargs)
            payload, key = tool.payload(args, kwargs)
            do = functools.partial(_awaited, act, args, kwargs)
            return await tape.acall(TOOL, payload, do, idempotency_key=key, dump=options.dump, load=options.load)

        return acall if inspect.iscoroutinefunction(function) else call

    return decorate


async def _awaited(act: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    found = act(*args, **kwargs)
    return await found if inspect.isawaitable(found) else found


class Tool:
    """A function as a tool: its name, its schema as a hash, and what of its arguments decides."""

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        self._signature = inspect.signature(function)
        self._name = options.name or function.__name__
        self._key = options.idempotency_key
        self._left_out = {*options.ignore, *([] if self._key is None else [self._key])}
        own = next(iter(self._signature.parameters), None)
        if own in _OWN:
            self._left_out.add(own)
        self._schema = canonical_hash(options.schema if options.schema is not None else self._parameters())

    def payload(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
        """Return what decides about a call, and its idempotency key. Defaults count as if they had been given."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if name not in self._left_out}
        key = None if self._key is None else bound.arguments.get(self._key)
        return {"name": self._name, "args": given, "schema": self._schema}, None if key is None else str(key)

    def _parameters(self) -> list[list[Any]]:
        return [
            [name, str(one.kind), _annotation(one.annotation), one.default is one.empty]
            for name, one in self._signature.parameters.items()
            if name not in self._left_out
        ]


def _annotation(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__qualname__", str(annotation))
