"""How Claude Code is started: the switches and variables that leave every decision to Podium."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from podium.agents.headless.claude.tools import tools_for
from podium.agents.headless.home import Folders, Login
from podium.agents.kit import AgentOptions
from podium.domain.asking import Turn
from podium.domain.errors import AgentRejected, BadInput
from podium.domain.model import Json, Noun

CONFIG = ".claude"
"""Its own folder, from the private home on."""
RETRIES = 2
ALONE = ("--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands")
"""Nothing of the workspace or the home configures it: settings, hooks, servers, commands."""

_QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    # Without it a wrong key is tried for minutes.
    "CLAUDE_CODE_MAX_RETRIES": str(RETRIES),
}
_GATED = {
    # `@/path` in a prompt would read that file with no tool call at all.
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    # What runs in the background reports its end after the turn's.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_CRON": "1",
    "CLAUDE_CODE_DISABLE_WORKFLOWS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    # A command is judged for the folder it runs in: `cd` must not last.
    "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "1",
    # Makes it tell how long a provider asks to wait instead of only failing; we do not wait.
    "CLAUDE_CODE_RETRY_WATCHDOG": "1",
}


class ClaudeSettings(Noun):
    """What only Claude Code knows: the agent's `options` in podium.yaml."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    """How much it thinks. None: its own choice."""
    append_system_prompt: str = ""
    """Said to the model behind the CLI's own instructions, in every turn."""
    hands: bool = True
    """False: it has no tools of its own, and Podium performs everything."""

    @classmethod
    def of(cls, options: AgentOptions) -> ClaudeSettings:
        """Raises `BadInput` for what it does not know."""
        try:
            return cls.model_validate(options.options)
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()
            )
            known = ", ".join(cls.model_fields)
            raise BadInput(
                f"agent {options.name!r}: options cannot be used: {faults}; options: {known}"
            ) from None


def argv_for(
    options: AgentOptions, turn: Turn, tools: tuple[str, ...] | None = None
) -> tuple[str, ...]:
    """`tools` are the switches that say which tools there are. None: those of its own that the turn has."""
    own = ("--tools", ",".join(tools_for(turn)), "--settings", _settings(turn))
    return (
        *(options.command or ("claude",)),
        *("-p", "--verbose", "--include-partial-messages"),
        *("--input-format", "stream-json", "--output-format", "stream-json"),
        *("--permission-prompt-tool", "stdio", "--permission-mode", "default"),
        *ALONE,
        *(own if tools is None else tools),
        *_wishes(options, turn),
    )


def environment_for(options: AgentOptions, home: Folders) -> dict[str, str]:
    served_at = {"ANTHROPIC_BASE_URL": options.base_url} if options.base_url else {}
    return {
        **_QUIET,
        **served_at,
        **options.env,
        **home.env,
        **_GATED,
        "CLAUDE_CONFIG_DIR": str(home.path / CONFIG),
        "CLAUDE_CODE_TMPDIR": str(home.temporary),
    }


def has_login_in(env: Mapping[str, str]) -> bool:
    """Whether the settings themselves log it in, so that no login has to be copied."""
    named = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
    return any(env.get(name) for name in named)


def login_in(folder: Path) -> Login:
    """The file that keeps a person logged in whose own folder this is."""
    names = ("accessToken", "refreshToken", "expiresAt")
    return Login(
        source=folder / ".credentials.json",
        target=f"{CONFIG}/.credentials.json",
        refreshable=tuple(f"claudeAiOauth.{name}" for name in names),
    )


def schema_for(turn: Turn) -> dict[str, Json] | None:
    """The contract as the CLI takes it. It only takes objects."""
    if turn.contract is None:
        return None
    schema = turn.contract.model_json_schema()
    return schema if schema.get("type") == "object" else None


def _settings(turn: Turn) -> str:
    """Every use of a tool is asked for, also of those that it would allow by itself."""
    return json.dumps({"permissions": {"ask": list(tools_for(turn))}})


def _wishes(options: AgentOptions, turn: Turn) -> tuple[str, ...]:
    limits, schema = turn.limits, schema_for(turn)
    wishes: dict[str, str] = {}
    if turn.session is not None:
        wishes["--resume"] = _conversation(turn.session)
    if schema is not None:
        wishes["--json-schema"] = json.dumps(schema)
    if limits.turns is not None:
        wishes["--max-turns"] = str(limits.turns)
    if limits.usd is not None:
        wishes["--max-budget-usd"] = f"{limits.usd:.6f}"
    return (*model_switches(options), *(word for pair in wishes.items() for word in pair))


def model_switches(options: AgentOptions) -> tuple[str, ...]:
    """What it thinks with, and how. Raises `BadInput` for what it does not know."""
    own = ClaudeSettings.of(options)
    wishes = {
        "--effort": own.effort,
        "--append-system-prompt": own.append_system_prompt,
        "--model": options.model,
    }
    return tuple(word for name, wish in wishes.items() if wish for word in (name, wish))


def _conversation(session: str) -> str:
    try:
        return str(uuid.UUID(session))
    except ValueError:
        raise AgentRejected(
            f"{session!r} is no conversation of Claude Code; ask without a session"
        ) from None
