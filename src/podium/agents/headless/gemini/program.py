"""Gemini CLI as a program: how it is started, and which version it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from pydantic import ValidationError

from podium.agents.about import ABOUT
from podium.agents.headless.gemini.layout import GeminiOptions
from podium.agents.headless.version import version_of
from podium.agents.kit import AgentKit, AgentOptions
from podium.domain.errors import ConfigFault, ConfigInvalid, ToolMissing
from podium.domain.launching import Spawn
from podium.ports import Process

KNOWN_VERSION = ABOUT["gemini"].tried
PACKAGE = "@google/gemini-cli"


def own_options(options: AgentOptions) -> GeminiOptions:
    """What only this medium knows. Raises `ConfigInvalid`."""
    try:
        return GeminiOptions.model_validate(options.options)
    except ValidationError as error:
        faults = [
            ConfigFault(fault["msg"], key=".".join(map(str, fault["loc"])))
            for fault in error.errors()
        ]
        raise ConfigInvalid(f"options of agent {options.name!r}", faults) from None


def command_of(options: AgentOptions) -> tuple[str, ...]:
    return options.command or ("gemini",)


async def start(kit: AgentKit, agent: str, spawn: Spawn) -> Process:
    """Start the CLI. Raises `ToolMissing` with the way to install it."""
    try:
        return await kit.launcher.start(spawn)
    except ToolMissing as missing:
        raise _with_cure(agent, missing) from None


async def version_of_cli(options: AgentOptions, kit: AgentKit, cwd: str) -> str:
    """The CLI's version. Read from its package: to ask the program takes more than a second."""
    command = command_of(options)
    packaged = _packaged_version(command[-1], kit.environ.get("PATH"))
    if packaged:
        return packaged
    try:
        return await version_of(kit.launcher, command, cwd)
    except ToolMissing as missing:
        raise _with_cure(options.name, missing) from None


def _packaged_version(program: str, path: str | None) -> str:
    found = shutil.which(program, path=path) or program
    packages = [folder / "package.json" for folder in Path(found).resolve().parents[:3]]
    return next((version for version in map(_version_in, packages) if version), "")


def _version_in(package: Path) -> str:
    try:
        about = json.loads(package.read_text())
        return str(about["version"]) if about["name"] == PACKAGE else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _with_cure(agent: str, missing: ToolMissing) -> ToolMissing:
    cure = f"`npm install -g {PACKAGE}` installs it"
    return ToolMissing(f"agent {agent!r} needs Gemini CLI: {missing}; {cure}")
