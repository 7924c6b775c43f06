"""Imports go down only: every module stands in one layer, and each layer may do less than those above it.

A module that is new needs a place in ``LAYERS``; a package stands for all its files.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "spangate"
STANDARD = {*sys.stdlib_module_names, "tomli", "tomllib"}

LAYERS = {
    "data": """
        _canonical _codes _errors _globs _keys _names _notes _paced _policy_types _records _redaction _run _settings
        _units _version""",
    "questions": """
        _attempts _causes _cites _compact _dialects _exits _failures _fingerprint _forest _interludes _journal _lineage
        _log_evidence _loops _membership _payload _surroundings _timing _usage _verdict""",
    "recordings": "_otlp _recording",
    "gates": "gates compare",
    "judge": "_judge _pinned",
    "buffer": "_buffer",
    "effects": """
        _allow_file _arrival _asking _attach _git _hosts _ledger _log_telemetry _native _pace _paths _policy _receiver
        _recording.source _repeatable _sdk _side_store _telemetry _worktree archive files ledger process tape wire""",
    "adapter": "_adapter _completion_hook _stamp",
    "release": "_release",
    "settling": "_settle",
    "processor": "_given _hooks _install _log_processor _processor _quick_hooks",
    "hosts": "cli testing",
}
"""From the bottom to the top; names are below ``spangate``. The package itself, the facade, stands above all."""

PURE = ("data", "questions", "recordings", "gates", "judge", "buffer")
IMPURE = frozenset(
    {
        *("asyncio", "concurrent", "logging", "multiprocessing", "opentelemetry", "os", "pathlib.Path", "queue"),
        *("random", "shutil", "signal", "socket", "subprocess", "tempfile", "threading", "time"),
    }
)
"""What needs a process, a clock, a disk or the SDK."""

EXCEPTIONS = {
    "_buffer.held": {"threading"},  # the one lock
    "_otlp.proto": {"opentelemetry.proto"},  # OTLP's own messages; nothing of the SDK
}

THREADING = {
    *("_buffer.held", "_ledger.store", "_log_processor", "_log_telemetry", "_native.course", "_receiver.door"),
    *("_receiver.server", "_release", "_release.flush", "_release.line", "_release.outlet", "_release.tries"),
    *(
        "_settle.watches",
        "_settle.worker",
        "_telemetry",
        "_worktree",
        "tape._recording",
        "tape._replaying",
        "tape._tape",
    ),
}
"""Who may know of threads: the lock, the threads with what they hand each other, and the counts of all threads."""

FOREIGN = {
    "recordings": {"google", "msgspec", "opentelemetry"},
    "effects": {"google", "hypercorn", "opentelemetry", "requests"},
    "adapter": {"opentelemetry"},
    "release": {"opentelemetry"},
    "settling": {"opentelemetry"},
    "processor": {"opentelemetry"},
    "hosts": {"opentelemetry", "click", "jinja2", "markupsafe", "rich"},
}
"""Other people's packages that a layer may import; the rest may import none."""

LATE = {
    "_recording": {"spangate._otlp.proto"},
    "_sdk": {"opentelemetry.exporter", "requests"},
    "_policy": {"tomllib", "tomli"},
    "_given": {"spangate._ledger.feeder", "spangate._receiver.door", "spangate.ledger"},
    "_processor": {"spangate._settle.witness"},
    "_receiver": {"hypercorn"},
    "_settle": {"spangate._sdk.received"},
    "cli": {"click", "spangate"},
}
"""Imports inside functions: of what is not always installed, or heavy and seldom used. None of them hides a circle."""

SDK_PRIVATES = {"_sdk.fields", "_sdk.log_records", "_sdk.received", "_sdk.takeover"}
"""Who may name what the SDK keeps to itself."""


class Import(NamedTuple):
    """A module, or a name of one, that ``by`` imports."""

    by: str
    target: str
    at_run_time: bool
    in_function: bool

    @property
    def own(self) -> str | None:
        """The module of ours that is imported, None if it is another's."""
        package, _, rest = self.target.partition(".")
        if package != "spangate":
            return None
        return rest if rest in MODULES else rest.rpartition(".")[0]

    def is_of(self, names: Iterable[str]) -> bool:
        """Say whether the target is one of ``names`` or below one."""
        return any(self.target == name or self.target.startswith(f"{name}.") for name in names)

    def __str__(self) -> str:
        return f"{self.by or 'spangate'} imports {self.target}"


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def home(module: str) -> str:
    """Return the entry of the table that a module falls under."""
    return next((entry for entry in (module, module.partition(".")[0]) if entry in RANKS), f"{module} has no layer")


def layer(module: str) -> str:
    return next((name for name, names in LAYERS.items() if home(module) in names.split()), "facade")


def imports_of(module: str, node: ast.AST, *, at_run_time: bool = True, in_function: bool = False) -> Iterator[Import]:
    match node:
        case ast.Import():
            yield from (Import(module, alias.name, at_run_time, in_function) for alias in node.names)
        case ast.ImportFrom():
            yield from (Import(module, f"{node.module}.{alias.name}", at_run_time, in_function) for alias in node.names)
        case ast.If(test=ast.Name("TYPE_CHECKING")):
            at_run_time = False
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            in_function = True
    for child in ast.iter_child_nodes(node):
        yield from imports_of(module, child, at_run_time=at_run_time, in_function=in_function)


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}
RANKS = {name: rank for rank, names in enumerate(LAYERS.values()) for name in names.split()} | {"": len(LAYERS)}
IMPORTS = [
    imported for module, path in MODULES.items() for imported in imports_of(module, ast.parse(path.read_bytes()))
]


def listed(imports: Iterable[Import]) -> list[str]:
    return [str(imported) for imported in imports]


def test_every_module_has_a_layer_and_every_layer_its_modules() -> None:
    assert {home(module) for module in MODULES} == set(RANKS)


def test_imports_go_down() -> None:
    ours = [imported for imported in IMPORTS if imported.own is not None]
    assert len(ours) > len(MODULES)
    assert listed(one for one in ours if RANKS[home(one.own or "")] > RANKS[home(one.by)]) == []


def test_imports_make_no_circle() -> None:
    graph: dict[str, set[str]] = {}
    for imported in IMPORTS:
        if imported.at_run_time and imported.own not in (None, imported.by):
            graph.setdefault(imported.by, set()).add(imported.own or "")
    TopologicalSorter(graph).prepare()


def test_nothing_inside_imports_the_facade() -> None:
    assert listed(imported for imported in IMPORTS if imported.own == "") == []


def test_no_gate_imports_a_gate() -> None:
    by_gates = [imported for imported in IMPORTS if imported.by.startswith("gates.")]
    assert listed(imported for imported in by_gates if home(imported.own or "") == "gates") == []


def test_pure_layers_touch_nothing_outside() -> None:
    found = [imported for imported in IMPORTS if layer(imported.by) in PURE and imported.is_of(IMPURE)]
    excepted = [imported for imported in found if imported.is_of(EXCEPTIONS.get(imported.by, ()))]
    assert listed(imported for imported in found if imported not in excepted) == []
    assert {imported.by for imported in excepted} == set(EXCEPTIONS)


def test_only_a_few_know_of_threads() -> None:
    assert {imported.by for imported in IMPORTS if imported.is_of({"threading"})} == THREADING


def test_other_peoples_packages_stay_where_they_belong() -> None:
    foreign = [one for one in IMPORTS if one.own is None and one.target.partition(".")[0] not in STANDARD]
    assert listed(imported for imported in foreign if not imported.is_of(FOREIGN.get(layer(imported.by), ()))) == []


def test_late_imports_are_the_heavy_and_the_optional_ones() -> None:
    late = [imported for imported in IMPORTS if imported.in_function]
    assert listed(imported for imported in late if not imported.is_of(LATE.get(home(imported.by), ()))) == []
    assert {home(imported.by) for imported in late} == set(LATE)


def test_what_the_sdk_keeps_to_itself_stays_there() -> None:
    private = [one for one in IMPORTS if one.is_of({"opentelemetry"}) and "._" in one.target]
    assert listed(imported for imported in private if imported.by not in SDK_PRIVATES) == []
