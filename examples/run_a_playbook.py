"""Your own agent follows a playbook: first it only claims success, then it does the work."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from podium.agents import AgentDeps, AgentScript, ScriptedAgent
from podium.library import AgentMaker, load_playbook, load_profile, run_playbook
from podium.ports import Agent

PROFILE = """\
name: Tiny Gallery
kind: wordpress
language: PHP
commands: {test: grep -q 6.6 readme.txt}
"""

PLAYBOOK = """\
---
name: bump
inputs: {version: {description: The version of the host.}}
limits: {tool_calls: 10, minutes: 5}
success: ["@test"]
---
# Bump to {{ version }}

## Change it

Set `Tested up to` in `readme.txt` to {{ version }}.
"""

EDIT = {
    "path": "readme.txt",
    "edits": [{"find": "Tested up to: 6.5", "replace": "Tested up to: 6.6"}],
}
LIAR = {"turns": [{"role": "playbook", "reply": "I changed it, and all tests pass."}]}
WORKER = {
    "turns": [
        {
            "role": "playbook",
            "acts": [{"call": "edit_file", "with": EDIT}],
            "reply": "It says 6.6 now.",
        }
    ]
}


def playing(script: object) -> AgentMaker:
    """An agent that plays a script; with a key it could be `GeminiAgent(kit, os.environ.__getitem__)`."""

    def make(deps: AgentDeps) -> Agent:
        part = AgentScript.model_validate(script)
        return ScriptedAgent(
            "script",
            part,
            deps.launcher,
            deps.doors,
            confinement_provider=deps.confinement_provider,
        )

    return make


async def follow(folder: Path, script: object) -> None:
    profile = load_profile(folder / "plugin-profile.yaml")
    playbook = load_playbook(folder / "bump.md")
    result = await run_playbook(
        playbook,
        profile,
        root=folder,
        agent=playing(script),
        inputs={"version": "6.6"},
        environ={**os.environ, "PODIUM_HOME": str(folder.parent / "home")},
    )
    print(f"it said: {result.words}")
    for criterion in result.criteria:
        print(f"  {criterion.command}: {'met' if criterion.met else f'NOT MET, {criterion.why}'}")
    print(f"  changed: {', '.join(result.changes.paths) or 'nothing'}")


def main() -> None:
    with TemporaryDirectory() as made:
        folder = Path(made) / "plugin"
        folder.mkdir()
        (folder / "plugin-profile.yaml").write_text(PROFILE)
        (folder / "bump.md").write_text(PLAYBOOK)
        (folder / "readme.txt").write_text("Tested up to: 6.5\n")
        asyncio.run(follow(folder, LIAR))
        asyncio.run(follow(folder, WORKER))


if __name__ == "__main__":
    main()
