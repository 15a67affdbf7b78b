"""The systemd unit: read by systemd itself, and by what agents' sandboxes need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.deploy.deploy_harness import DEPLOY, linter, podium_words

UNIT = DEPLOY / "podium-worker@.service"
SYSTEMD = "Debian, Ubuntu: apt-get install systemd"


def unit() -> dict[str, list[str]]:
    """Return the values of each key, in the order of the file."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        if line and line[0] not in "#[":
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The unit as a host has it, but for where Podium is."""
    podium = Path(sys.executable).with_name("podium")
    path = tmp_path / "podium-worker@app.service"
    path.write_text(UNIT.read_text().replace("/opt/podium/bin/podium", str(podium)))
    return path


def systemd_analyze(*words: str) -> subprocess.CompletedProcess[str]:
    program = linter("systemd-analyze", SYSTEMD)
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


def test_systemd_finds_no_fault_in_the_unit(installed: Path) -> None:
    checked = systemd_analyze("verify", "--man=no", str(installed))
    # It ends with 0 also when it warns of a key that it does not know.
    assert (checked.returncode, checked.stderr) == (0, "")


def test_systemd_calls_it_well_confined(installed: Path) -> None:
    words = ("security", "--offline=yes", "--threshold=40", "--no-pager", str(installed))
    checked = systemd_analyze(*words)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    "key",
    [
        "RestrictNamespaces",  # bubblewrap makes them
        "ProtectKernelTunables",  # the kernel lets nobody mount /proc anew where parts of it are covered
        "ProtectKernelLogs",
        "ProtectHostname",
        "ProtectProc",
        "ProcSubset",
        "RestrictSUIDSGID",  # with it there is no openat2
        "MemoryDenyWriteExecute",  # Node's compiler
        "PrivateNetwork",
    ],
)
def test_agents_can_be_confined_in_it(key: str) -> None:
    assert key not in unit()
    assert not any(group in unit()["SystemCallFilter"][0] for group in ("@mount", "@sandbox"))


def test_a_worker_that_is_stopped_ends_its_agents_itself() -> None:
    assert unit()["KillMode"] == ["mixed"]
    assert unit()["SuccessExitStatus"] == ["130"]
    assert unit()["Restart"] == ["on-failure"]


def test_secrets_come_from_files_of_root_and_stand_nowhere_in_the_unit() -> None:
    assert unit()["EnvironmentFile"] == ["/etc/podium/%i.env"]
    assert unit()["LoadCredential"] == ["receipt.key:/etc/podium/%i.receipt.key"]
    assert "PODIUM_RECEIPT_KEY=%d/receipt.key" in unit()["Environment"][0].split()
    assert "postgresql://" not in UNIT.read_text()


def test_what_it_starts_is_a_command_of_podium() -> None:
    program, *words = unit()["ExecStart"][0].split()
    assert program == "/opt/podium/bin/podium"
    podium_words([word for word in words if word != "$WORKER_OPTIONS"])
