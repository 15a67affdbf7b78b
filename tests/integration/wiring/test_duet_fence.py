"""The fence around a pair: it works in a person's folder, and reaches nothing that directs it."""

from __future__ import annotations

import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from podium.agents.program import Needs, with_needs
from podium.app.app import Podium
from podium.core.decisions import Effect
from podium.core.errors import BadInput
from podium.core.processes import ProcessSpec
from podium.core.turns import Turn
from podium.jobs.duet.confinement import duet_confinement
from tests.integration.wiring.test_podium import configured


@dataclass
class PairFolder:
    """A person's folder, and what belongs to a pair that works in it."""

    podium: Podium
    socket: Path
    side: Path

    @property
    def root(self) -> Path:
        return self.podium.folders.project

    async def tries(self, script: str, *shown: Path) -> str:
        """Return the output of a program of the pair that tries this."""
        fence = await duet_confinement(self.podium, self.socket).confinement(str(self.root))
        needs = Needs(writable=(self.side / "home",), readable=(self.side / "messages", *shown))
        spawn = ProcessSpec(
            argv=("bash", "-c", script), cwd=str(self.root), confinement=with_needs(fence, needs)
        )
        ended = await self.podium.launcher.run(spawn)
        return (ended.stdout + ended.stderr).decode()


@pytest.fixture
async def pair_folder(tmp_path: Path) -> AsyncIterator[PairFolder]:
    podium = configured(tmp_path)
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as tmux:
        path = Path(short) / "tmux"
        tmux.bind(str(path))
        tmux.listen()
        side = podium.folders.user_state / "duets" / "planner"
        for folder in ("home", "messages"):
            (side / folder).mkdir(parents=True)
        yield PairFolder(podium, path, side)
    await podium.close()


async def test_the_folder_is_worked_in_and_what_gives_orders_is_not(
    pair_folder: PairFolder,
) -> None:
    root = pair_folder.root
    for folder in (".git", "vendor/lib/.git", ".podium", "vendor/lib/.podium", ".claude"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "config").write_text("as it was")
    (root / ".env").write_text("TOKEN=s3cr3t")
    result = await pair_folder.tries(
        """
        echo new > made.txt
        for place in .git vendor/lib/.git .claude; do echo evil > $place/config; cat $place/config; echo; done
        cat .podium/config vendor/lib/.podium/config .env
        mv .git elsewhere && echo moved
        """
    )
    assert (root / "made.txt").read_text() == "new\n"
    assert result.count("as it was\n") == 3
    assert "s3cr3t" not in result
    assert "moved" not in result
    kept = [path.read_text() for path in root.rglob("config")]
    assert kept == ["as it was"] * len(kept)


async def test_the_side_has_its_home_its_messages_and_nothing_else_of_podiums(
    pair_folder: PairFolder,
) -> None:
    (pair_folder.side / "messages/1").write_text("do this")
    (pair_folder.side / "side.json").write_text("private")
    other = pair_folder.side.with_name("executer")
    other.mkdir()
    (other / "side.json").write_text("private")
    result = await pair_folder.tries(
        f"""
        cat {pair_folder.side}/messages/1; echo
        echo forged > {pair_folder.side}/messages/2
        echo mine > {pair_folder.side}/home/file
        cat {pair_folder.side}/side.json {other}/side.json; ls -A {pair_folder.podium.folders.user_config}
        """
    )
    assert result.startswith("do this\n")
    assert (pair_folder.side / "home/file").read_text() == "mine\n"
    assert not (pair_folder.side / "messages/2").exists()
    assert "private" not in result


async def test_tmux_cannot_be_reached(pair_folder: PairFolder) -> None:
    code = f"import socket; socket.socket(socket.AF_UNIX).connect({str(pair_folder.socket)!r}); print('reached')"
    script = f'{sys.executable} -IS -c "{code}"'
    assert "reached" in await pair_folder.tries(script, pair_folder.socket.parent), (
        "the attempt itself is broken"
    )
    result = await pair_folder.tries(script)
    assert "Error" in result
    assert "reached" not in result


async def test_a_folder_with_what_podium_keeps_is_refused(pair_folder: PairFolder) -> None:
    fence = duet_confinement(pair_folder.podium, pair_folder.socket)
    for root in (
        pair_folder.socket.parent,
        pair_folder.podium.folders.user_state,
        pair_folder.side,
        Path("/"),
    ):
        with pytest.raises(BadInput, match="--cwd DIR"):
            await fence.confinement(str(root))
        assert not (root / ".podium").exists()


async def test_without_a_sandbox_nothing_is_held(tmp_path: Path) -> None:
    podium = configured(tmp_path, user="sandbox: none\n")
    fence = await duet_confinement(podium).confinement(str(podium.folders.project))
    assert fence.kind == "none"
    await podium.close()


async def test_a_folder_that_no_fence_can_be_drawn_around_is_refused(
    pair_folder: PairFolder,
) -> None:
    (pair_folder.root / "odd\nname" / ".git").mkdir(parents=True)
    with pytest.raises(BadInput, match="cannot be confined"):
        await duet_confinement(pair_folder.podium).confinement(str(pair_folder.root))


async def test_commands_of_a_pair_are_judged_as_those_of_every_confined_run(
    pair_folder: PairFolder,
) -> None:
    (pair_folder.root / "a.txt").write_text("one\n")
    doors = await pair_folder.podium.hook_doors(
        confinement_provider=duet_confinement(pair_folder.podium, pair_folder.socket)
    )
    turn = Turn(
        run_id="run_1",
        step_key="leg:0",
        role="executer",
        prompt="go",
        workspace=str(pair_folder.root),
    )
    async with doors.open(turn) as door:
        listed = await door.perform("run_command", {"command": "cat *.txt nothing 2>&1 | head"})
        removes = await door.perform("run_command", {"command": "rm a.txt"})
    assert listed.outcome is not None, listed.say
    assert listed.outcome.result["stdout"].startswith("one\n")
    assert removes.decision is Effect.ASK, "nobody brings back what is removed in a person's folder"


async def test_without_a_sandbox_the_words_alone_are_judged(tmp_path: Path) -> None:
    podium = configured(tmp_path, user="sandbox: none\n")
    assert duet_confinement(podium).held(str(podium.folders.project)) is None
    await podium.close()
