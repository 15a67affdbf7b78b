"""Media the agent suite runs on: real programs and real provider libraries against a loopback model.

Each plays the same part, told in beats that are neutral to it. The house around it is the real one:
settings in a file, the default policy, SQLite, the hook door.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from podium.app.agent_builder import build_agent
from podium.app.app import Podium, open_podium
from podium.config.configuration import load_configuration
from podium.core.events import AnyEvent
from podium.core.turns import Reply, Turn, TurnLimits
from podium.ports import Agent, EventQuery
from podium.testing.modelserver import ModelServer
from tests.integration.agents import clis

KEY = "sk-loopback-3fA9cX7pQ2mZ8vK1"
"""What the model server accepts. It must stand in no file that Podium writes."""

NONCE = r'(?s:.*"podium_nonce": (?:\{"const": )?"(?P<nonce>\w+)"|)'
"""Finds what the form of the answer asks for, in prompts that ask for a form."""

ModelTurn = dict[str, Any]
"""A step of the model server; `scripted` beside it says how the scripted agent plays the same."""


def say(text: str, **more: Any) -> ModelTurn:
    return {"text": text, "scripted": [{"say": text}], **more}


def answer(text: str, payload: dict[str, Any]) -> ModelTurn:
    """Words with a payload, given as the medium has it."""
    return {
        "text": text,
        "payload": {**payload, "podium_nonce": "{{nonce}}"},
        "scripted": [{"say": text}, {"payload": payload}],
    }


def run(command: str) -> ModelTurn:
    return {"run": command, "scripted": [{"run": command}]}


def fails(kind: str, retry_seconds: float | None = None, **step: Any) -> ModelTurn:
    """A failure of the provider."""
    fail: dict[str, Any] = {"kind": kind}
    if retry_seconds is not None:
        fail["retry_seconds"] = retry_seconds
    return {**step, "scripted": [{"fail": fail}]}


def hang() -> ModelTurn:
    return {"fault": "hang", "scripted": [{"ignore_sigterm": True}, {"hang": True}]}


def flood(size: int, then: str, payload: dict[str, Any]) -> ModelTurn:
    """A great many words, and a payload behind them."""
    return {
        "flood_bytes": size,
        "then": then,
        "scripted": [{"flood_bytes": size}, {"payload": payload}],
    }


def bad_bytes() -> ModelTurn:
    return {"fault": "invalid_utf8", "scripted": [{"bad_bytes": True}]}


@dataclass(frozen=True)
class Medium:
    """A kind of agent: what podium.yaml says of it."""

    name: str
    settings: Callable[[str], dict[str, Any]]
    """Its entry under `agents:`, given where the model is served. Skips when its program is not there."""
    is_process: bool = True


def _gemini(url: str) -> dict[str, Any]:
    env = {"GEMINI_API_KEY": "secret://MODEL_KEY"}
    model = "gemini-2.5-flash"
    return {
        "kind": "gemini",
        "command": list(clis.gemini()),
        "model": model,
        "base_url": url,
        "env": env,
    }


def _claude(url: str) -> dict[str, Any]:
    env = {"ANTHROPIC_API_KEY": "secret://MODEL_KEY"}
    model = "claude-sonnet-4-5"
    return {
        "kind": "claude",
        "command": [clis.claude()],
        "model": model,
        "base_url": url,
        "env": env,
    }


def _codex(url: str) -> dict[str, Any]:
    env = {"OPENAI_API_KEY": "secret://MODEL_KEY"}
    model = "gpt-5.5"
    return {
        "kind": "codex",
        "command": [clis.codex()],
        "model": model,
        "base_url": url,
        "env": env,
    }


def _acp(url: str) -> dict[str, Any]:
    entry = _gemini(url)
    return {**entry, "kind": "acp", "command": [*entry["command"], "--acp"]}


def _api(provider: str, key: str, model: str, path: str = "") -> Callable[[str], dict[str, Any]]:
    def settings(url: str) -> dict[str, Any]:
        return {
            "kind": "api",
            "model": model,
            "base_url": url + path,
            "env": {key: "secret://MODEL_KEY"},
            "options": {"provider": provider},
        }

    return settings


SCRIPTED = Medium("scripted", lambda url: {"kind": "scripted", "script": "part.yaml"})
GEMINI = Medium("gemini", _gemini)
CLAUDE = Medium("claude", _claude)
CODEX = Medium("codex", _codex)
ACP = Medium("acp-gemini", _acp)
GOOGLE_API = Medium("api-google", _api("google", "GEMINI_API_KEY", "gemini-2.5-flash"), False)
OPENAI_API = Medium("api-openai", _api("openai", "OPENAI_API_KEY", "gpt-5", "/v1"), False)
ANTHROPIC_API = Medium(
    "api-anthropic", _api("anthropic", "ANTHROPIC_API_KEY", "claude-sonnet-4-5"), False
)

MEDIA = [SCRIPTED, GEMINI, CLAUDE, CODEX, ACP, GOOGLE_API, OPENAI_API, ANTHROPIC_API]


@dataclass
class Stage:
    """One medium in a house, ready to be asked."""

    medium: Medium
    podium: Podium
    server: ModelServer
    agent: Agent
    project: Path
    turns: list[Turn] = field(default_factory=list)

    def turn(self, prompt: str = "do it", *, seconds: float = 60.0, **more: Any) -> Turn:
        return Turn(
            run_id="run_1",
            step_key="ask#0",
            role="tester",
            prompt=prompt,
            workspace=str(self.project),
            limits=TurnLimits(seconds=seconds),
            **more,
        )

    async def ask(self, prompt: str = "do it", **more: Any) -> Reply:
        return await self.agent.ask(self.turn(prompt, **more))

    async def events(self) -> list[AnyEvent]:
        store = await self.podium.store()
        found = await store.read(lambda view: view.events(EventQuery(run_id="run_1")))
        return [event.body for event in found]

    async def has_begun(self) -> bool:
        """Return whether the agent is in the middle of its turn."""
        if self.medium is SCRIPTED:
            # Not just its sandbox: one that is killed before the program starts was never begun.
            commands = processes_in(self.project).values()
            return any("player.py" in command and "bwrap" not in command for command in commands)
        return bool(self.server.requests)

    def model_messages(self) -> str:
        return json.dumps([seen.body for seen in self.server.requests], ensure_ascii=False)

    def branch(self) -> str:
        return git(self.project, "branch", "--show-current")

    def leaks(self) -> list[Path]:
        """Files of Podium's that hold the key."""
        state = [self.podium.folders.state, self.podium.folders.user_state]
        files = [path for folder in state for path in folder.rglob("*") if path.is_file()]
        # What a CLI itself remembers of the conversation is its own, and goes with its home.
        files = [path for path in files if not (self.medium.is_process and "homes" in path.parts)]
        return [path for path in files if KEY.encode() in path.read_bytes()]


@asynccontextmanager
async def on_stage(
    medium: Medium,
    folder: Path,
    *heartbeats: ModelTurn,
    then: Sequence[ModelTurn] = (),
    down: bool = False,
    key: str = KEY,
) -> AsyncIterator[Stage]:
    """The medium with its part: `beats` for the first prompt, `then` for one that asks again.

    `down`: nobody serves the model. `key` is the one the agent has.
    """
    project, home = folder / "project", folder / "home"
    home.mkdir()
    a_repository(project)
    script = {
        "rules": [
            {"name": "again", "when": r"could not be used" + NONCE, "steps": _steps(then)},
            {"name": "first", "when": NONCE, "steps": _steps(heartbeats)},
        ][0 if then else 1 :]
    }
    _write_part(project / "part.yaml", heartbeats, then)
    async with ModelServer(script, key=KEY) as server:
        url = "http://127.0.0.1:9" if down else server.url
        settings = {
            "secrets": ["MODEL_KEY"],
            "agents": {"player": medium.settings(url)},
            "roles": {"tester": {"agent": "player"}},
            "policy": {"rules": [{"name": "env", "command": "env", "decision": "allow"}]},
        }
        (home / "config.yaml").write_text(yaml.safe_dump(settings))
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PODIUM_HOME": str(home),
            "MODEL_KEY": key,
        }
        configuration = load_configuration(environ, project=project)
        async with open_podium(configuration, environ) as podium:
            agent = build_agent(podium, "player", await podium.hook_doors())
            yield Stage(medium, podium, server, agent, project)


def _steps(heartbeats: Sequence[ModelTurn]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in heartbeat.items() if name != "scripted"}
        for heartbeat in heartbeats
    ]


def _write_part(path: Path, heartbeats: Sequence[ModelTurn], then: Sequence[ModelTurn]) -> None:
    def acts(part: Sequence[ModelTurn]) -> list[Any]:
        return [act for heartbeat in part for act in heartbeat["scripted"]]

    turns = [{"role": "tester", "when": "could not be used", "acts": acts(then)}] if then else []
    path.write_text(
        yaml.safe_dump({"turns": [*turns, {"role": "tester", "acts": acts(heartbeats)}]})
    )


def a_repository(root: Path) -> None:
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "README").write_text("x\n")
    (root / ".gitignore").write_text(".podium/\npart.yaml\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    git(root, "checkout", "-qb", "work")


def git(root: Path, *words: str) -> str:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    done = subprocess.run(
        ["git", *identity, *words], cwd=root, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def processes_in(folder: Path) -> dict[int, str]:
    """Living processes that work in this folder or name it: pid → command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if str(folder) in os.readlink(entry / "cwd") or str(folder) in " ".join(words):
                found[int(entry.name)] = shlex.join(words)
        except OSError:
            continue
    return found
