"""Contestants in processes of their own, one lap after the other in turn.

Each has its own heap, so that what one holds is not collected at the cost of another, and a minute in which the machine
is slow is slow for all.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from statistics import geometric_mean, quantiles
from typing import TypeAlias

Lap: TypeAlias = Callable[[], float]
Prepare: TypeAlias = Callable[[], Lap]
"""Made in the contestant's process, so it must be importable: a function of a module, or a partial of one."""

_spawn = multiprocessing.get_context("spawn")


def calm(heats: Sequence[Sequence[float]]) -> float:
    """Return what a lap costs when little else happens on the machine: the mean over the heats of the lower quartile.

    A median follows the neighbours of a shared machine, and a minimum leaves out what the garbage collector does. The
    mean is the geometric one, so that the ratio of two such figures is the mean of the ratios within the heats: between
    two heats the machine itself may become slower or faster.
    """
    return geometric_mean(quantiles(laps, n=4, method="inclusive")[0] for laps in heats)


def races(contestants: Mapping[str, Prepare], laps: int, heats: int) -> dict[str, list[list[float]]]:
    """Return what each contestant measured in the laps of each of the ``heats``.

    Each heat has processes of its own: where the heap of a process happens to lie is worth some percent.
    """
    found = [race(contestants, laps) for _ in range(heats)]
    return {name: [heat[name] for heat in found] for name in contestants}


def race(contestants: Mapping[str, Prepare], laps: int, *, warm_up: bool = True) -> dict[str, list[float]]:
    """Return what each contestant measured in each lap; a lap to warm up is not counted.

    Raises:
        EOFError: a contestant broke down; its traceback is on stderr.
    """
    pipes: dict[str, Connection] = {}
    runners = []
    for name, prepare in contestants.items():
        here, there = _spawn.Pipe()
        runner = _spawn.Process(target=_run, args=(prepare, there), daemon=True)
        runner.start()
        there.close()
        pipes[name] = here
        runners.append(runner)
    figures: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(laps + warm_up):
        for name, pipe in pipes.items():
            pipe.send(True)  # noqa: FBT003  go on
            figure = pipe.recv()
            if number or not warm_up:
                figures[name].append(figure)
    for pipe in pipes.values():
        pipe.send(False)  # noqa: FBT003  stop
    for runner in runners:
        runner.join()
    return figures


def _run(prepare: Prepare, pipe: Connection) -> None:
    lap = prepare()
    while pipe.recv():
        pipe.send(lap())
