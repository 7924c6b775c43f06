"""The model that is pinned where a request names none: by the gate's setting, or by the environment of the program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from spangate._records import Gate
from spangate.gates.fingerprints import Fingerprints

VARIABLE: Final = "AGENT_MODEL_ID"


def with_environment(gates: Iterable[Gate], environment: Mapping[str, str]) -> tuple[Gate, ...]:
    """Return ``gates`` with the model that the environment names, where the gate for fingerprints has none itself."""
    model = environment.get(VARIABLE, "").strip()
    if not model:
        return tuple(gates)
    return tuple(
        replace(gate, model_from_config=model)
        if isinstance(gate, Fingerprints) and gate.model_from_config is None
        else gate
        for gate in gates
    )


def pinned_model(gates: Iterable[Gate]) -> str | None:
    """Return the model that the gates pin, if they do: of several the first."""
    pins = (gate.model_from_config for gate in gates if isinstance(gate, Fingerprints))
    return next((model for model in pins if model is not None), None)
