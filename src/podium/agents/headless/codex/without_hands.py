"""Codex without hands: its own tools are off or refused, and the toolbox is its only server.

With any server codex offers three tools that read what servers call resources. There is no switch
for them. The toolbox has no resources, and the hook refuses them like all that is codex's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.agents.headless.codex.tools import Judged
from podium.agents.headless.handless import CALL_SECONDS, SERVER, START_SECONDS
from podium.domain.errors import NotPossibleNow
from podium.domain.launching import ProcessLimits, Spawn
from podium.domain.model import Json
from podium.ports import Launcher

TOOLBOX = f"mcp__{SERVER}__"
"""What it puts before the names of the server's tools."""
LARGEST_CATALOGUE_BYTES = 16_000_000

_OFF = ("shell_tool", "unified_exec", "view_image", "multi_agent", "multi_agent_v2")
_MODELS_OFF: dict[str, Json] = {
    "shell_type": "disabled",
    "apply_patch_tool_type": None,
    "experimental_supported_tools": [],
    "node_repl_disabled": True,
    # With it the toolbox would not be offered: the model would have to search for it first.
    "supports_search_tool": False,
}
_MODELS_WITHOUT = ("tool_mode", "multi_agent_version")
"""What makes a model write programs that use the tools, or gives it others to work for it."""


@dataclass(frozen=True)
class Handless:
    """What a codex without hands is laid out with."""

    server: Mapping[str, Json]
    """How it starts the toolbox."""
    models: str
    """The catalogue of models, as JSON."""


class Toolbox(Judged):
    """Holds what codex does against the one thing it may: to use Podium's tools, which are judged there."""

    def difference(self, item: dict[str, Any]) -> str:
        if item.get("type") == "mcpToolCall" and item.get("server") == SERVER:
            return ""
        return "this agent has no tools of its own"


async def models_without_hands(
    agent: str, launcher: Launcher, command: tuple[str, ...], cwd: str, env: Mapping[str, str]
) -> str:
    """The models codex knows, as JSON, with the tools that each would bring along taken away.

    Raises `NotPossibleNow` for a codex that does not tell.
    """
    limits = ProcessLimits(seconds=60.0, output_bytes=LARGEST_CATALOGUE_BYTES)
    asking = (*command, "debug", "models", "--bundled")
    ended = await launcher.run(Spawn(argv=asking, cwd=cwd, env=dict(env), limits=limits))
    try:
        models = json.loads(ended.stdout)["models"]
        without = [_without_hands(model) for model in models]
    except (ValueError, LookupError, TypeError, AttributeError):
        raise NotPossibleNow(
            f"agent {agent!r} has no hands, and this codex does not tell which models it knows; "
            "install the version that `podium doctor` names"
        ) from None
    return json.dumps({"models": without})


def _without_hands(model: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in model.items() if name not in _MODELS_WITHOUT}
    return {**kept, **_MODELS_OFF}


def settings_without_hands(
    settings: Mapping[str, Any], server: Mapping[str, Json], models: Path
) -> dict[str, Any]:
    """Its settings, with no tool of its own and the toolbox as the only server."""
    return {
        **settings,
        "web_search": "disabled",
        "model_catalog_json": str(models),
        "features": {**settings["features"], **dict.fromkeys(_OFF, False)},
        "tools": {
            "experimental_request_user_input": {"enabled": False},
            "update_plan": {"enabled": False},
        },
        "mcp_servers": {
            SERVER: {
                **server,
                "required": True,
                "default_tools_approval_mode": "approve",
                "startup_readiness": "catalog",
                "startup_timeout_sec": START_SECONDS,
                "tool_timeout_sec": CALL_SECONDS,
            }
        },
    }
