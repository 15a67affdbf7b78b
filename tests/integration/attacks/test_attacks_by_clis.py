"""The same attacks, launched by the real CLIs through their own shell tools, in the house as it is wired."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.app.agent_builder import build_agent
from podium.app.app import Podium, open_podium
from podium.config.configuration import load_configuration
from podium.core.errors import ImportRefused
from podium.core.turns import Reply, Turn, TurnLimits
from podium.ports import Workspace
from podium.sandbox import ProcessLauncher
from podium.testing.modelserver import ModelServer
from tests.integration.attacks.arena import FORBIDDEN, SEARCH_PATH, Arena
from tests.integration.attacks.branch import wrong_with_branch
from tests.integration.attacks.cases import ATTACKS
from tests.integration.attacks.kernel import end, survivors
from tests.integration.attacks.person import look_around
from tests.integration.attacks.picture import Picture, Zones, left_behind
from tests.integration.attacks.trial import places_of
from tests.integration.attacks.users import place
from tests.integration.attacks.witness import Witnesses
from tests.integration.contract.media import CLAUDE, CODEX, GEMINI, KEY, NONCE, Medium
from tests.integration.workspaces.workspace_harness import needs_bwrap

pytestmark = [needs_bwrap(), pytest.mark.timeout(300)]

NASTIEST = (
    *("G08", "G52", "G54", "G72", "G78", "G88"),
    *("F19", "F27", "F34"),
    *("E09", "E13", "E35", "E45", "E48", "E59"),
    *("N01", "N15", "N18", "N33", "N36"),
    *("S52", "S53", "S80", "S94"),
)
PLAIN = (
    "git checkout -q -B feature HEAD~1",
    "git push -q origin +HEAD~1:main",
    "rm -rf @OUT@/folder",
)
"""What a CLI is told to run as it is; the others are scripts in its worktree."""


@dataclass
class Harness:
    """Podium in the arena, with one workspace and somebody who watches."""

    arena: Arena
    podium: Podium
    workspace: Workspace
    witnesses: Witnesses
    server: ModelServer

    @property
    def worktree(self) -> Path:
        return Path(self.workspace.record.path)

    def plant(self) -> None:
        """Put each attack as a script into the worktree."""
        places = {**places_of(self.arena), **self.witnesses.places()}
        attacks = {attack.id: attack for attack in ATTACKS}
        (self.worktree / "ran").mkdir()
        for name in NASTIEST:
            text = "\n".join(attacks[name].texts(places))
            script = self.worktree / f"{name}.sh"
            script.write_text(f"#!/bin/bash\ntouch ran/{name}\n{text}\n")
            script.chmod(0o755)

    async def turn(self) -> Reply:
        """One turn of the agent in its workspace, and what the supervisor does after it."""
        seen = await self.workspace.begin_turn()
        try:
            agent = build_agent(self.podium, "player", await self.podium.hook_doors())
            return await agent.ask(self._intent())
        finally:
            await self.workspace.end_turn(seen)
            with suppress(ImportRefused):
                await self.workspace.deliver()

    def _intent(self) -> Turn:
        return Turn(
            run_id="run_1",
            step_key="ask#0",
            role="tester",
            prompt="Do it.",
            workspace=str(self.worktree),
            limits=TurnLimits(seconds=240.0),
        )

    def ran(self) -> set[str]:
        return {path.name for path in (self.worktree / "ran").iterdir()}


@asynccontextmanager
async def _harness(medium: Medium) -> AsyncIterator[Harness]:
    base = Path(tempfile.mkdtemp(prefix="podium-attacks-", dir=place()))
    try:
        arena = Arena(base, ProcessLauncher(parent_env={"PATH": SEARCH_PATH}))
        await arena.build()
        async with ModelServer(_script(arena), key=KEY) as server:
            environ = _settled(base / "podium", medium.settings(server.url))
            configuration = load_configuration(environ, project=arena.places.repository)
            async with open_podium(configuration, environ) as podium:
                intent = podium.workspace_spec("by-cli").model_copy(update={"forbidden": FORBIDDEN})
                workspace = await podium.workspaces.create(intent)
                arena.task = workspace.record
                witnesses = Witnesses(arena.places.root, secrets.token_hex(8), arena.users_env())
                try:
                    yield Harness(arena, podium, workspace, witnesses, server)
                finally:
                    end(survivors(witnesses.nonce))
                    witnesses.close()
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _script(arena: Arena) -> dict[str, Any]:
    commands = [line.replace("@OUT@", str(arena.places.outside)) for line in PLAIN]
    commands += [f"timeout 20 ./{name}.sh" for name in NASTIEST]
    steps = [*({"run": command} for command in commands), {"text": "Done."}]
    return {"rules": [{"name": "all", "when": NONCE, "steps": steps}]}


def _settled(home: Path, agent: dict[str, Any]) -> dict[str, str]:
    home.mkdir()
    settings = {
        "secrets": ["MODEL_KEY"],
        "agents": {"player": agent},
        "roles": {"tester": {"agent": "player"}},
    }
    (home / "config.yaml").write_text(yaml.safe_dump(settings))
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PODIUM_HOME": str(home),
        "MODEL_KEY": KEY,
    }


@pytest.mark.parametrize("medium", [GEMINI, CLAUDE, CODEX], ids=lambda medium: medium.name)
async def test_no_attack_by_a_real_cli_gets_through(medium: Medium) -> None:
    async with _harness(medium) as harness:
        harness.plant()
        arena = harness.arena
        zones, picture = Zones(harness.worktree), Picture(arena.places, arena.task)
        reply = await harness.turn()
        assert reply.text.strip() == "Done."
        assert survivors(harness.witnesses.nonce) == []
        assert look_around(arena) == []
        changed = picture.changed_to(Picture(arena.places, arena.task))
        assert [what for what in changed if ".podium" not in what] == []
        assert zones.changed_to(Zones(harness.worktree)) == []
        assert wrong_with_branch(arena)[1] == []
        assert left_behind(harness.worktree) == []
        assert harness.witnesses.noticed() == []
        assert harness.ran() == set(NASTIEST), "the rest was kept from running at all"
