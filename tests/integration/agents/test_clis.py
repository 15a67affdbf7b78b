"""`scripts/agent-clis`: installs the real CLIs, and says plainly when it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.agents import clis


def agent_clis(cache: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(clis.SCRIPTS / "agent-clis"), *words],
        env={**os.environ, "PODIUM_CLI_CACHE": str(cache), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_says_where_the_programs_are(tmp_path: Path) -> None:
    assert agent_clis(tmp_path, "--where").stdout == f"{tmp_path}\n"
    default = agent_clis(tmp_path, "--where", PODIUM_CLI_CACHE="", XDG_CACHE_HOME="/cache")
    assert default.stdout == "/cache/podium/clis\n"


def test_it_does_nothing_when_all_is_there(tmp_path: Path) -> None:
    for name, version in clis.versions().items():
        (tmp_path / f"{name}-{version}").mkdir()
        (tmp_path / f"{name}-{version}/program").write_text("bin/it\n")
    done = agent_clis(tmp_path, PATH="/nowhere")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_without_node_it_says_so_and_is_no_failure(tmp_path: Path) -> None:
    done = agent_clis(tmp_path / "cache", PATH="/nowhere")
    assert done.returncode == 0
    assert "Node.js 20 or newer with npm is not here" in done.stderr
    assert not (tmp_path / "cache").exists()


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_an_install_that_fails_leaves_its_reason_and_nothing_else(tmp_path: Path) -> None:
    nowhere = {"npm_config_registry": "http://127.0.0.1:9", "npm_config_fetch_retries": "0"}
    done = agent_clis(tmp_path, "claude", **nowhere, npm_config_cache=str(tmp_path / "npm"))
    assert done.returncode == 0
    reason = tmp_path / f"claude-{clis.versions()['claude']}.failed"
    assert "ECONNREFUSED" in reason.read_text()
    assert "could not be installed" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {reason.name, "npm"}


def test_unknown_name_is_reported(tmp_path: Path) -> None:
    done = agent_clis(tmp_path, "clyde")
    assert done.returncode == 2
    assert "'clyde'" in done.stderr


def test_a_program_that_is_missing_skips_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clis, "_cache", lambda: tmp_path)
    monkeypatch.delenv("REAL_CLIS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="which `make live` runs"):
        clis.codex()
    monkeypatch.setenv("REAL_CLIS", "all")
    with pytest.raises(pytest.skip.Exception, match="not installed"):
        clis.codex()
    (tmp_path / f"codex-{clis.versions()['codex']}.failed").write_text("no room on the disk\n")
    with pytest.raises(pytest.skip.Exception, match="no room on the disk"):
        clis.codex()
