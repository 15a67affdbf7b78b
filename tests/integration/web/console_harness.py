"""A console on loopback over a real project, and how programs come in."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from podium.app.app import Podium, open_podium
from podium.app.flow_registry import FlowBuilder
from podium.config.configuration import load_configuration
from podium.web.access.tokens import ConsoleRole
from podium.web.app import build_app
from podium.web.context import WebContext
from podium.web.server import served
from podium.web.settings import ConsoleSettings

ALL_ROLES = frozenset(ConsoleRole)


@dataclass
class Stage:
    """A console that is served."""

    url: str
    token: str
    context: WebContext
    podium: Podium

    def client(self, token: str | None = None, **headers: str) -> httpx.AsyncClient:
        """A program's client, with the stage's token unless told otherwise; an empty one sends none."""
        given = self.token if token is None else token
        known = {"authorization": f"Bearer {given}"} if given else {}
        return httpx.AsyncClient(base_url=self.url, headers={**known, **headers}, timeout=60)

    def new_token(self, name: str, *roles: ConsoleRole) -> str:
        return self.context.tokens.make(name, frozenset(roles), self.podium.clock.now())[0]


@asynccontextmanager
async def console(
    folder: Path,
    *,
    yaml: str = "{}\n",
    environ: Mapping[str, str] | None = None,
    flows: Mapping[str, FlowBuilder] | None = None,
    settings: ConsoleSettings | None = None,
) -> AsyncIterator[Stage]:
    """A console over `folder/project` on a free port, with a home of its own, until the block ends.

    `yaml` becomes podium.yaml where the project has none.
    """
    project = folder / "project"
    project.mkdir(exist_ok=True)
    if not (project / "podium.yaml").exists():
        (project / "podium.yaml").write_text(yaml)
    known = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "PODIUM_HOME": str(folder / "home"),
        "PODIUM_USER": "sam",
        **(environ or {}),
    }
    configuration = load_configuration(known, project=project)
    async with open_podium(configuration, known, flows=flows) as podium:
        context = WebContext(
            podium, settings or ConsoleSettings(port=0, requests_per_minute=1_000_000)
        )
        token, _ = context.tokens.make("sam", ALL_ROLES, podium.clock.now())
        async with served(build_app(context), context.settings) as url:
            yield Stage(url=url, token=token, context=context, podium=podium)
