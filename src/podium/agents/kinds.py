"""Kinds of agents (program, login, hosts, way to the gate), and errors explained with what a person can change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from podium.agents.deps import AgentOptions
from podium.core.errors import AgentNotLoggedIn, AgentUnavailable, PodiumError, ToolMissing
from podium.core.turns import Reply, Turn
from podium.ports import Agent


@dataclass(frozen=True)
class About:
    """A kind of agent: its program, how it is logged in, and how its calls come to the gate."""

    door: str
    """The way by which what it wants to do is judged before it happens."""
    program: tuple[str, ...] = ()
    """The command that starts it when podium.yaml has none. Empty: it is no program of its own."""
    install: str = ""
    tried: str = ""
    """The version Podium was tried with."""
    keys: tuple[str, ...] = ()
    """Variables that log it in, any of them."""
    any_key: bool = False
    """It takes the keys of many providers: any variable that is named like a key counts."""
    login: str = ""
    """File that keeps a person logged in, from their home on."""
    moved_by: str = ""
    """The person's variable that names another folder for it."""
    moved_to: str = ""
    """Path of the file in that folder."""

    hosts: tuple[str, ...] = ()
    """Hosts where its provider answers and logs it in, for a network that leads to the model alone."""
    is_program: bool = True
    """False: nothing is started that a person installed."""

    @property
    def secret_keys(self) -> tuple[str, ...]:
        """The variables of `keys` whose value is a secret."""
        return tuple(key for key in self.keys if key.endswith(("_KEY", "_TOKEN")))

    def key_in(self, env: Mapping[str, str]) -> str | None:
        """The variable that logs it in, where the settings have one."""
        named = [key for key in self.keys if key in env]
        like = [name for name in env if name.endswith(("_KEY", "_TOKEN"))] if self.any_key else []
        return next(iter((*named, *like)), None)

    def login_file(self, home: Path, environ: Mapping[str, str]) -> Path | None:
        if not self.login:
            return None
        moved = environ.get(self.moved_by) if self.moved_by else None
        return Path(moved) / self.moved_to if moved else home / self.login


ABOUT: Mapping[str, About] = {
    "gemini": About(
        door="BeforeTool hook, and an allow-list policy behind it",
        program=("gemini",),
        install="npm install -g @google/gemini-cli",
        tried="0.61.0",
        keys=("GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"),
        login=".gemini/oauth_creds.json",
        moved_by="GEMINI_CLI_HOME",
        moved_to=".gemini/oauth_creds.json",
        hosts=(
            "generativelanguage.googleapis.com",
            "cloudcode-pa.googleapis.com",
            "oauth2.googleapis.com",
            "aiplatform.googleapis.com",
            "*.aiplatform.googleapis.com",
        ),
    ),
    "claude": About(
        door="PreToolUse callbacks of its own protocol, and permission requests behind them",
        program=("claude",),
        install="npm install -g @anthropic-ai/claude-code",
        tried="2.1.325",
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        login=".claude/.credentials.json",
        moved_by="CLAUDE_CONFIG_DIR",
        moved_to=".credentials.json",
        hosts=("api.anthropic.com", "platform.claude.com", "console.anthropic.com"),
    ),
    "codex": About(
        door="a trusted PreToolUse hook, and approvals of its app-server behind it",
        program=("codex",),
        install="npm install -g @openai/codex",
        tried="0.166.0",
        keys=("OPENAI_API_KEY",),
        login=".codex/auth.json",
        moved_by="CODEX_HOME",
        moved_to="auth.json",
        hosts=("api.openai.com", "chatgpt.com", "auth.openai.com"),
    ),
    "opencode": About(
        door="a plugin that asks before every tool, and its permission settings behind it",
        program=("opencode",),
        install="npm install -g opencode-ai",
        tried="1.18.33",
        any_key=True,
        login=".local/share/opencode/auth.json",
        moved_by="XDG_DATA_HOME",
        moved_to="opencode/auth.json",
        hosts=(
            "opencode.ai",
            "api.anthropic.com",
            "api.openai.com",
            "generativelanguage.googleapis.com",
            "openrouter.ai",
        ),
    ),
    "acp": About(
        door="permission requests of the Agent Client Protocol; files written by Podium",
        any_key=True,
    ),
    "api": About(
        door="no tools of its own: Podium performs every call",
        is_program=False,
        keys=(
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
        ),
    ),
    "bus": About(
        door="none of its own; the socket in PODIUM_DOOR, whose variables come with each turn",
        is_program=False,
    ),
    "command": About(
        door="none of its own; the socket in PODIUM_DOOR, if the program asks there", any_key=True
    ),
    "scripted": About(door="the socket in PODIUM_DOOR", is_program=False),
}
"""Kind → what is known of it."""


SECRET_PREFIX = "secret://"  # noqa: S105 - how a reference to a secret begins


class ExplainedAgent:
    """An agent that is a program. Its errors also say with what of podium.yaml it was asked."""

    def __init__(
        self, inner: Agent, options: AgentOptions, about: About, login_file: Path | None = None
    ) -> None:
        """`login_file` keeps the person logged in, where the agent's kind has one."""
        self._inner = inner
        self._options = options
        self._about = about
        self._login_file = login_file

    @property
    def name(self) -> str:
        return self._inner.name

    async def ask(self, turn: Turn) -> Reply:
        try:
            return await self._inner.ask(turn)
        except AgentUnavailable as error:
            _say_more(error, self._address())
            raise
        except AgentNotLoggedIn as error:
            _say_more(error, self._login())
            raise
        except ToolMissing as error:
            _say_more(error, self._program())
            raise

    def _address(self) -> str:
        url = self._options.base_url or _address_in(self._options.env)
        return f"the address was {public_address(url)}" if url else ""

    def _login(self) -> str:
        env = self._options.env
        if (name := self._about.key_in(env)) is not None:
            return key_hint(name, env[name])
        if self._login_file is not None and self._login_file.is_file():
            return f"it used a copy of {self._login_file}; log in again with its own program"
        return "it was started without a key or a login"

    def _program(self) -> str:
        if self._options.command:
            return f"the program is set by `command` of agent {self.name!r} in podium.yaml"
        return (
            f"or set its path with `command: [/path/to/it]` for agent {self.name!r} in podium.yaml"
        )


def key_hint(variable: str, value: str) -> str:
    """Name the key that was used and where to set another. The value itself is shown only as a reference."""
    if not value.startswith(SECRET_PREFIX):
        return f"the key was {variable} in the agent's `env`; set a valid one there"
    name = value.removeprefix(SECRET_PREFIX)
    return f"the key was {variable} from {value}; set {name} in Podium's environment to a valid one"


def public_address(url: str) -> str:
    """The address without a name, a password or a query, which may be secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an invalid address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _address_in(env: Mapping[str, str]) -> str:
    urls = (value for name, value in env.items() if name.endswith("BASE_URL"))
    return next((value for value in urls if value.startswith(("http://", "https://"))), "")


def _say_more(error: PodiumError, detail: str) -> None:
    """Put words behind the message; type, cause and figures of the error stay as they are."""
    if detail and detail not in str(error):
        error.args = (f"{error}; {detail}",)
