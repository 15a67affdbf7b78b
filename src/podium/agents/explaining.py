"""What a person can change about an agent's trouble: the address, the key or login, the program that were tried."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from podium.agents.about import About
from podium.agents.kit import AgentOptions
from podium.domain.asking import Reply, Turn
from podium.domain.errors import AgentNotLoggedIn, AgentUnavailable, PodiumError, ToolMissing
from podium.ports import Agent

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
        given = self._options.base_url or _address_in(self._options.env)
        return f"it was tried at {shown_address(given)}" if given else ""

    def _login(self) -> str:
        env = self._options.env
        if (name := self._about.key_in(env)) is not None:
            return key_words(name, env[name])
        if self._login_file is not None and self._login_file.is_file():
            return f"it was asked with a copy of {self._login_file}; log in anew with its program"
        return "it was asked with no key and no login"

    def _program(self) -> str:
        if self._options.command:
            return f"`command` of agent {self.name!r} in podium.yaml says what to start"
        return f"or say where it is with `command: [/path/to/it]` for agent {self.name!r} in podium.yaml"


def key_words(variable: str, value: str) -> str:
    """Which key was used and where to set another. The value itself is said only as a reference."""
    if not value.startswith(SECRET_PREFIX):
        return f"the key was {variable} in the agent's `env`; put one there that is valid"
    name = value.removeprefix(SECRET_PREFIX)
    return f"the key was {variable} from {value}; set {name} in Podium's environment to one that is valid"


def shown_address(url: str) -> str:
    """The address without a name, a password or a query, which may be secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _address_in(env: Mapping[str, str]) -> str:
    found = (value for name, value in env.items() if name.endswith("BASE_URL"))
    return next((value for value in found if value.startswith(("http://", "https://"))), "")


def _say_more(error: PodiumError, words: str) -> None:
    """Put words behind the message; type, cause and figures of the error stay as they are."""
    if words and words not in str(error):
        error.args = (f"{error}; {words}",)
