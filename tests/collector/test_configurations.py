"""Every configuration is one that the Collector accepts, and the README says when to take it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import trustme

from tests.collector.running import CONFIGURATIONS, otelcol

NAMES = sorted(path.name for path in CONFIGURATIONS.glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_the_collector_accepts(name: str, tmp_path: Path) -> None:
    certificate = trustme.CA().issue_cert("localhost")
    certificate.private_key_pem.write_to_path(str(tmp_path / "key"))
    certificate.cert_chain_pems[0].write_to_path(str(tmp_path / "certificate"))
    settings = {
        "SPANGATE_CERTIFICATE": str(tmp_path / "certificate"),
        "SPANGATE_KEY": str(tmp_path / "key"),
        "SPANGATE_TOKEN": "token",
        "SPANGATE_QUEUE": str(tmp_path / "queue"),
        "SPANGATE_BACKEND": "http://127.0.0.1:6006",
    }
    command = [otelcol(), "validate", "--config", str(CONFIGURATIONS / name)]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_it_says_when_to_take_it(name: str) -> None:
    comment = (CONFIGURATIONS / name).read_text().partition("\nreceivers:")[0]
    assert "# Take this" in comment
    assert f"`{name}`" in (CONFIGURATIONS / "README.md").read_text()
