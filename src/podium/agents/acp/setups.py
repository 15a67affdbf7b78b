"""How an ACP agent is set up for a turn, when nothing but its command line is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from podium.agents.acp.ending import trouble_of_words
from podium.agents.acp.keeping import LINE_BYTES
from podium.agents.acp.outcomes import Ended, ended_by
from podium.agents.acp.wishes import Wish, wishes_of
from podium.agents.headless.accounting import unkept_limits
from podium.agents.headless.ending import not_given
from podium.agents.headless.home import Home, Login
from podium.agents.kit import AgentKit, AgentOptions
from podium.domain.asking import Turn
from podium.domain.errors import PodiumError
from podium.domain.launching import ProcessLimits, Spawn
from podium.domain.model import Json, Noun
from podium.domain.own_tools import WORDS, granted_words, unknown_words
from podium.ports import TurnDoor

STDERR_BYTES = 200_000


class AcpOptions(Noun):
    """What only this medium knows of an agent in podium.yaml."""

    copy_files: tuple[str, ...] = ()
    """Files of the person's home that keep it logged in, copied to the same place in its own."""
    keep: tuple[str, ...] = ()
    """Folders of its home where its conversations lie."""
    hosts: tuple[str, ...] = ()
    """Where its provider answers, for a network that leads to the model alone."""


class Setup(Protocol):
    """What differs from agent to agent."""

    keep: tuple[str, ...]
    hosts: tuple[str, ...]

    def logins(self) -> Sequence[Login]: ...

    async def prepare(self, turn: Turn, home: Home, door: TurnDoor) -> Spawn:
        """Lay out the home and say what to start."""
        ...

    def wishes(self, call: Mapping[str, Json]) -> list[Wish]:
        """What a tool call wants."""
        ...

    def ended(self, update: Mapping[str, Json]) -> Ended | None:
        """How a tool call ended; None when it goes on."""
        ...

    def hands_over_in(self, turn: Turn) -> str:
        """The folder in which it lets us write every file; empty when that is not known."""
        ...

    def trouble(self, agent: str, status: int | None, words: str, now: datetime) -> PodiumError:
        """The error for what its provider answered."""
        ...

    def warnings(self, turn: Turn, version: str) -> tuple[str, ...]: ...


class PlainSetup:
    """Any agent: an empty home, the variables of its settings, questions read by the protocol alone."""

    def __init__(self, options: AgentOptions, own: AcpOptions, kit: AgentKit) -> None:
        self._options = options
        self._own = own
        self._kit = kit
        self.keep = own.keep
        self.hosts = own.hosts

    def logins(self) -> Sequence[Login]:
        return [Login(self._kit.user_home / name, name) for name in self._own.copy_files]

    async def prepare(self, turn: Turn, home: Home, door: TurnDoor) -> Spawn:
        return spawn_of(self._options.command, turn, {**self._options.env, **home.env})

    def wishes(self, call: Mapping[str, Json]) -> list[Wish]:
        return wishes_of(call)

    def ended(self, update: Mapping[str, Json]) -> Ended | None:
        return ended_by(update)

    def hands_over_in(self, turn: Turn) -> str:
        return ""

    def trouble(self, agent: str, status: int | None, words: str, now: datetime) -> PodiumError:
        return trouble_of_words(agent, status, words, now)

    def warnings(self, turn: Turn, version: str) -> tuple[str, ...]:
        """Words that no question of the protocol stands for. Any other name may be that of a tool of its."""
        name = self._options.name
        common = [
            word for word in turn.own_tools or () if granted_words((word,)) & frozenset(WORDS)
        ]
        return (
            *not_given(name, unknown_words(common, ("web_fetch",))),
            *unkept_limits(name, turn.limits, "tokens", "usd", "turns"),
        )


def spawn_of(argv: tuple[str, ...], turn: Turn, env: dict[str, str]) -> Spawn:
    limits = ProcessLimits(
        seconds=turn.limits.seconds, output_bytes=STDERR_BYTES, line_bytes=LINE_BYTES
    )
    return Spawn(argv=argv, cwd=turn.workspace, env=env, interactive=True, limits=limits)
