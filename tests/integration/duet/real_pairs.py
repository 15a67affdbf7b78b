"""Pairs of the real Claude Code, codex and Gemini CLI on terminals, held by the kernel, with one loopback model."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from podium.app.app import Podium
from podium.config.configuration import load_configuration
from podium.core.events import AnyEvent
from podium.core.terminals import PairSize
from podium.core.work import Run
from podium.jobs.duet.claims import grant
from podium.jobs.duet.models import DUET, DuetJob, Pair
from podium.jobs.duet.pairs import PairRequest, pair_named
from podium.jobs.duet.project_terminals import terminals_of_project
from podium.jobs.duet.terminals import take_down
from podium.ports import EventQuery
from podium.testing.modelserver import ModelServer
from tests.integration.agents import clis

KEY = "sk-live-hunter2-hunter2-hunter2"
ID = r'ID = "(?P<id>[^"]+)"'

_NASTY = (
    "# Title *star* _under_ `tick` ~~gone~~\n\n    def f():\n        return 'ünïcödé 漢字 🎭 \\ &lt; <b>'\n\n"
    '| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n  - two\n\n> quoted ]] and [[x]] and {"json": [1]}\n'
)


def nasty(name: str, size: int) -> str:
    """A body of about so many bytes that every screen would spoil.

    Without tabs: Claude Code makes blanks of them, and is handed what has some as a file.
    """
    line = f"{name} {'long ' * 60}end"
    lines, at = [name, _NASTY], 0
    while len("\n".join(lines).encode()) < size:
        lines.append(f"{at}: {line}")
        at += 1
    return "\n".join(lines).rstrip()


def _block(to: str, kind: str, body: str) -> str:
    header = f'[[POLI:MSG {{"to":"{to}","type":"{kind}","id":"{{{{id}}}}"}}]]'
    section = kind.upper()
    return f"I have thought about it.\n\n{header}\n<{section}>\n{body}\n</{section}>\n[[/POLI:MSG]]"


def script(plan: str, result: str, report: str) -> dict[str, Any]:
    """Return the model's script for both sides: it can tell them apart only by the text of the request."""
    return {
        "rules": [
            {
                "when": rf"The user's request:[\s\S]*{ID}",
                "steps": [_block("EXECUTER", "plan", plan)] * 40,
            },
            {
                "when": rf"PLANNER sends you this plan[\s\S]*{ID}",
                "steps": [_block("PLANNER", "result", result)] * 40,
            },
            {"when": "EXECUTER sends you this result:", "steps": [report] * 40},
            {"when": "answer with the word READY", "steps": ["READY"] * 4},
        ],
        "default": {"steps": ["READY"] * 40},
    }


def _agent(kind: str, url: str) -> dict[str, Any]:
    match kind:
        case "claude":
            return {
                "command": [clis.claude()],
                "model": "claude-sonnet-4-5",
                "base_url": url,
                "env": {"ANTHROPIC_API_KEY": "secret://KEY"},
            }
        case "codex":
            return {
                "command": [clis.codex()],
                "model": "gpt-5.5",
                "base_url": f"{url}/v1",
                "env": {"OPENAI_API_KEY": "secret://KEY"},
            }
    return {
        "command": list(clis.gemini()),
        "model": "gemini-2.5-flash",
        "base_url": url,
        "env": {"GEMINI_API_KEY": "secret://KEY"},
        "options": {"attempts": 1},
    }


@dataclass
class Live:
    """A pair that is up, or comes up when it is first asked."""

    podium: Podium
    pair: Pair
    model: ModelServer

    async def send(self, text: str) -> Run:
        """One task to its end."""
        engine = await self.podium.hosting_engine()
        job = DuetJob(text=text, pairs=(self.pair,))
        run = await engine.start(DUET, job.model_dump(mode="json"), task=text)
        return await engine.finish(run.id)

    async def events(self, run: Run, *types: str) -> list[AnyEvent]:
        query = EventQuery(run_id=run.id, types=types)
        return [event.body for event in await (await self.podium.journal()).read(query)]

    async def resize(self, columns: int, rows: int) -> None:
        """Of both panes, as a person does who makes a window smaller."""
        terminals = terminals_of_project(self.podium, self.podium.environ)
        await terminals.resize(PairSize(columns=columns, rows=rows))

    def asked(self, words: str) -> list[str]:
        """Prompts of the model that hold these words, the newest of each request, as they came in."""
        return [
            prompt
            for prompt in self.model.prompts()
            # codex asks beside for a title of what it was told.
            if words in prompt and "Generate a concise" not in prompt
        ]


@asynccontextmanager
async def real_pair(
    root: Path, planner: str, executer: str, payload: dict[str, Any]
) -> AsyncIterator[Live]:
    """`root` is short: sockets lie in it. The pair is gone when this is left."""
    project, home = root / "project", root / "home"
    project.mkdir()
    home.mkdir()
    async with ModelServer(payload, key=KEY) as model:
        agents = {
            name: {"kind": name, **_agent(name, model.url)}
            for name in dict.fromkeys((planner, executer))
        }
        settings = {"agents": agents, "secrets": ["KEY"], "sandbox": {"network": "model-only"}}
        (home / "config.yaml").write_text(yaml.safe_dump(settings))
        environ = {
            "PODIUM_HOME": str(home),
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "TMUX_TMPDIR": str(root),
            "KEY": KEY,
        }
        podium = Podium(load_configuration(environ, project=project), environ)
        pair = pair_named(podium, "main", PairRequest(planner=planner, executer=executer), {})
        grant(podium, pair)
        try:
            yield Live(podium, pair, model)
        finally:
            await podium.close()
            await take_down(podium, pair)


def leaks(folder: Path) -> list[str]:
    """Files beneath that hold the key."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and KEY in path.read_text(errors="replace")
    ]


def body_in(prompt: str, section: str) -> str:
    found = re.search(rf"<{section}>\n([\s\S]*?)\n</{section}>\n\n", prompt)
    assert found, json.dumps(prompt[:2000])
    return found[1]
