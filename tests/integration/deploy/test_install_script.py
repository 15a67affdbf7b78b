"""`scripts/install`, with a uv and a pip that only write down what they are asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts/install"
PIP = """#!/bin/sh
[ "$4" = list ] || { echo "pip $*" >>"$LOG"; exit 0; }
echo "global.index-url='https://example.org/mirror'"
echo "global.cert='/etc/own.pem'"
"""
UV = """#!/bin/sh
echo "uv $* index=$UV_DEFAULT_INDEX cert=$SSL_CERT_FILE" >>"$LOG"
exit $UV_EXIT
"""


def install(folder: Path, *, uv_exit: int) -> list[str]:
    programs = folder / "bin"
    programs.mkdir()
    for name, text in (("python", PIP), ("uv", UV)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    log = folder / "log"
    environ = {"PATH": "/usr/bin:/bin", "VENV": str(folder), "CONSTRAINTS": "pins.txt", "LOG": str(log), "UV_EXIT": str(uv_exit)}  # fmt: skip
    command = ["sh", str(SCRIPT), "--group", "dev"]
    subprocess.run(command, env=environ, check=True, timeout=60, capture_output=True)
    return [line.replace(str(folder), "") for line in log.read_text().splitlines()]


def test_uv_installs_with_the_index_and_certificate_that_are_set_for_pip(tmp_path: Path) -> None:
    (line,) = install(tmp_path, uv_exit=0)
    assert line.startswith("uv pip install --python /bin/python ")
    assert "--constraint pins.txt --group dev" in line
    assert line.endswith("index=https://example.org/mirror cert=/etc/own.pem")


@pytest.mark.parametrize("code", [1, 130])
def test_pip_installs_the_same_where_uv_fails(tmp_path: Path, code: int) -> None:
    *_, upgrade, last = install(tmp_path, uv_exit=code)
    assert upgrade.startswith("pip -m pip install")
    assert "pip>=25.1" in upgrade
    assert last.startswith("pip -m pip install")
    assert last.endswith("--constraint pins.txt --group dev")
