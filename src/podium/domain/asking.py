"""Talking to agents: a turn goes in, a reply comes out."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from podium.domain.gating import Usage
from podium.domain.messages import Awaited
from podium.domain.model import Json, Moment, NonEmpty, Noun
from podium.domain.workspaces import Snapshot


class TurnLimits(Noun):
    """What one turn may take. None means no limit of that kind."""

    seconds: float | None = 600.0
    tokens: int | None = None
    usd: float | None = None
    turns: int | None = None
    tool_calls: int | None = None
    """Calls that the turn may make, refused ones included."""
    same_results: int | None = None
    """How often in a row the very same call may come to the very same result."""


StopKind = Literal["turns", "tool_calls", "same_results", "tokens", "usd", "minutes"]


class Stop(Noun):
    """Why a turn was ended before its agent was done."""

    kind: StopKind
    reason: str

    @property
    def exit_code(self) -> int:
        """That of a door that ends with it: time ran out, or something else did."""
        return 6 if self.kind == "minutes" else 5


class WishedCall(Noun):
    """A call that a model asked for."""

    id: str = ""
    """The provider's own name for it."""
    tool: str
    arguments: Json = None
    """As it wrote them: they may be no object, or no JSON."""


class ModelAnswer(Noun):
    """One answer of a model within a turn, kept so that a turn can go on with it after a crash."""

    number: int
    """From 0, within the turn."""
    request: str
    """Digest of all that the model was asked: an answer to something else is of no use."""
    text: str = ""
    calls: tuple[WishedCall, ...] = ()
    model: str = ""
    usage: Usage = Usage()
    sizes: dict[str, int] = Field(default_factory=dict)
    """Characters of the request by part: `instructions`, `tools`, `prompt`, `history`."""
    counted: bool = False
    """Of one from before: what it used was recorded with an attempt that failed, and counts only for limits."""
    kept: Json = None
    """The whole of it as whoever asked writes it down. None: it was too large to be kept."""


class Finish(Noun):
    """An agent's word that it is done, given by the tool of that name."""

    summary: str
    payload: Json = None


PayloadFound = Literal["none", "native", "strict", "repaired"]
"""How a payload was found: not at all, by the medium's own schema, as plain JSON, or mended."""


class Turn(Noun):
    """One question to an agent, complete in itself."""

    run_id: str
    step_key: str
    role: NonEmpty
    prompt: str
    native_prompt: str = ""
    """The prompt for a medium that holds the answer to the contract's schema itself: it names no nonce. Empty: `prompt`."""
    news: str = ""
    """What an agent is told in place of the prompt where its conversation, which begins with it, goes on."""
    workspace: str
    """Folder the agent works in."""
    session: str | None = None
    """Conversation to continue; None starts a fresh one."""
    limits: TurnLimits = TurnLimits()
    allowed_tools: tuple[str, ...] | None = None
    """Names of tools its calls may ask for. None: all that the gate allows."""
    own_tools: tuple[str, ...] | None = None
    """What the agent may use of its own beside files and shell, such as `web_search`. None: nothing more."""
    contract: type[BaseModel] | None = None
    """What the payload of the reply must validate as. None: words are enough."""
    nonce_slot: str = ""
    """Text that stands for the turn's nonce in the prompt's own examples of an answer. Empty: it has none."""
    provenance: tuple[str, ...] = ()
    """Untrusted sources that led to the turn."""
    asking: int = 0
    """Which asking of the step this is: what is wished for again in a later one is done again."""
    awaits: Awaited | None = None
    """The message that it is to bring. An agent that hears all that was said need not look for it."""

    def words(self, *, native: bool) -> str:
        """What the agent is asked, where its medium holds the answer to the contract's schema or not."""
        return self.native_prompt if native and self.native_prompt else self.prompt


ReadFrom = Literal["", "transcript", "screen"]
"""Where the words of a program on a terminal were read: to the byte in what it wrote down, or on its screen."""


class Reply(Noun):
    """What an agent answered, validated."""

    text: str
    payload: Json = None
    found: PayloadFound = "none"
    usage: Usage = Usage()
    agent: str = ""
    model: str = ""
    version: str = ""
    """Of the program that answered, where it is one."""
    session: str | None = None
    seconds: float = 0.0
    transcript: str | None = None
    """Path of what was really said, line by line."""
    read_from: ReadFrom = ""
    untold: tuple[str, ...] = ()
    """Refusals whose reason its protocol could not carry. They go into the next prompt."""
    warnings: tuple[str, ...] = ()
    """What a person should know of the answer, such as a version nobody has tried."""
    stopped: Stop | None = None
    """Set when a limit ended the turn; the text is then what was said until there."""
    waiting_approvals: tuple[str, ...] = Field(default=())
    """Approvals this turn's calls were told to wait for."""
    keeps_calls: bool = False
    """The calls that wait stay open in its conversation: when that goes on, Podium makes them and hands the results
    over before anything else is said. False: the agent has to make them again."""
    approval_deadlines: dict[str, Moment] = Field(default_factory=dict)
    """Until when each of them can be answered. Filled in by whoever asked the turn."""
    snapshot: Snapshot | None = None
    """The workspace as a turn left it that waits for approvals: where the next turn starts. Filled in likewise."""
