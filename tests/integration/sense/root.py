"""A root with a system's state in it, and ticks on it as the command line would make them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from podium.app.app import Podium
from podium.config.configuration import load_configuration
from podium.core.work import QueueSpec
from podium.jobs.sense import SENSE, tick
from podium.jobs.sense.composition import tick_deps
from podium.jobs.sense.models import TickOutcome

FOLDERS = (
    "CLC",
    "CLS",
    "bridge/inbox/CLC",
    "bridge/outbox/LIAM",
    "g/docs",
    "g/reports",
    "g/telemetry",
    "g/tools",
    "logs",
    "state/clc_sessions",
)
UNWELL = {
    "status": "degraded",
    "checks": [{"name": "opal_api", "status": "failed", "message": "connection refused"}],
}


class Root:
    """A folder laid out as the loop expects it, a settings file of its own, and a user's home beside it."""

    def __init__(self, tmp_path: Path, sense: Mapping[str, Any] | None = None) -> None:
        self.path = tmp_path / "root"
        self.home = tmp_path / "home"
        self.environ = {"PODIUM_HOME": str(self.home), "PATH": "/usr/local/bin:/usr/bin:/bin"}
        for folder in FOLDERS:
            (self.path / folder).mkdir(parents=True)
        (self.path / "CLC" / "core.md").write_text("the core\n")
        self.health(UNWELL)
        self.configure(sense or {"planner": "rules"})

    def configure(self, sense: Mapping[str, Any], **settings: Any) -> None:
        """Said in the user's own file, for what a project says of commands and addresses needs trust."""
        self.home.mkdir(exist_ok=True)
        text = yaml.safe_dump({"flows": {"sense": dict(sense)}, **settings})
        (self.home / "config.yaml").write_text(text)

    def health(self, content: Any) -> None:
        place = self.path / "g" / "telemetry" / "health_check_latest.json"
        place.write_text(json.dumps(content))

    @asynccontextmanager
    async def podium(self, mode: str = "") -> AsyncIterator[Podium]:
        flags = {"mode": mode} if mode else None
        configuration = load_configuration(self.environ, project=self.path, flags=flags)
        podium = Podium(configuration, self.environ)
        try:
            yield podium
        finally:
            await podium.close()

    async def tick(self, mode: str = "", *, manual: bool = True) -> TickOutcome:
        """One tick by a process of its own, as far as the store can tell."""
        async with self.podium(mode) as podium:
            engine = await podium.hosting_engine()
            async with engine.serve([QueueSpec(name=SENSE)]):
                return await tick(await tick_deps(podium), manual=manual)

    @property
    def log(self) -> str:
        return (self.path / "logs" / "gmx_clc_orchestrator.log").read_text()

    @property
    def inbox(self) -> list[str]:
        return sorted(path.name for path in (self.path / "bridge" / "inbox" / "CLC").iterdir())
