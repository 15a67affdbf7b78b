"""The real CLIs on the loopback model reach nothing else: in a network that has only loopback, and by what they try."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.contract.media import (
    ACP,
    CLAUDE,
    CODEX,
    GEMINI,
    Medium,
    Stage,
    on_stage,
    run,
    say,
)
from tests.live import skip_unless_wanted
from tests.soaking import in_soak

ROOT = Path(__file__).parents[3]
# Each runs a suite of its own; what the others try to reach is seen below without one.
PROGRAMS = [in_soak(GEMINI), in_soak(CLAUDE), CODEX, in_soak(ACP)]


_REACHED = re.compile(r"connect\(\d+, \{sa_family=AF_INET6?, (.*?)\}, \d+\)")


def _has_namespaces() -> bool:
    unshare = shutil.which("unshare")
    if unshare is None or shutil.which("ip") is None:
        return False
    return subprocess.run([unshare, "-n", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(
    not _has_namespaces(), reason="needs `ip` and the right to make network namespaces"
)
@pytest.mark.parametrize("medium", PROGRAMS, ids=lambda medium: medium.name)
def test_a_turn_works_where_there_is_no_network_but_loopback(medium: Medium) -> None:
    skip_unless_wanted(medium.name)
    suite = "tests/integration/contract/test_agent_media_contract.py"
    test = f"{suite}::test_an_allowed_call_runs_and_is_receipted[{medium.name}]"
    pytest_line = f"{sys.executable} -m pytest -q -n 0 -p no:cacheprovider '{test}'"
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", f"ip link set lo up && exec {pytest_line}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
    )
    if "1 skipped" in done.stdout:
        pytest.skip(done.stdout.strip().splitlines()[-2])
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("medium", [GEMINI, CLAUDE, CODEX], ids=lambda medium: medium.name)
async def test_a_turn_tries_to_reach_nothing_but_the_model_on_loopback(
    medium: Medium, tmp_path: Path
) -> None:
    # Inside the fence this is the one folder outside of the private home that may be written.
    log = tmp_path / "project" / "connects"
    traced = _traced(medium, log)
    async with on_stage(traced, tmp_path, run("touch ran.marker"), say("Done.")) as stage:
        await stage.ask()
        assert (stage.project / "ran.marker").exists()
        reached = _REACHED.findall(log.read_text())
        assert reached, "strace saw no connection at all"
        assert [item for item in reached if not _is_the_model(item, stage)] == []


def _traced(medium: Medium, log: Path) -> Medium:
    def settings(url: str) -> dict[str, object]:
        entry = medium.settings(url)
        watch = ["strace", "-f", "-qq", "-e", "trace=connect", "-s", "200", "-o", str(log)]
        return {**entry, "command": [*watch, *entry["command"]]}

    return Medium(medium.name, settings, medium.is_process)


def _is_the_model(connection: str, stage: Stage) -> bool:
    port = stage.server.port
    return f"htons({port})" in connection and ("127.0.0.1" in connection or "::1" in connection)
