"""Turns of agents: prompt and limits in, reply out; messages between agents; tools that agents have of their own.

[[POLI:MSG {"to":"EXECUTER","type":"plan","id":"TASK-NONCE"}]]
<PLAN>
…
</PLAN>
[[/POLI:MSG]]
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from podium.core.decisions import Usage
from podium.core.model import FrozenModel, Json, NonEmpty, UtcDatetime
from podium.core.workspaces import WorktreeSnapshot

TAG = "POLI:MSG"

Side = Literal["PLANNER", "EXECUTER"]
Address = Literal["PLANNER", "EXECUTER", "USER"]
MessageType = Literal["plan", "result", "report", "status", "blocker"]

SECTIONS: dict[str, str] = {
    "plan": "PLAN",
    "result": "RESULT",
    "report": "REPORT",
    "status": "STATUS",
    "blocker": "BLOCKER",
}
"""Section headings around the body of each type. They are optional."""


class MessageBlock(FrozenModel):
    """A block that was read: whom it is for, what it is, and its body without its section's tags."""

    to: str
    type: str
    id: str
    body: str
    mended: bool = False
    """A terminal's marks had to be taken off."""


class IgnoredBlock(FrozenModel):
    """Something that looked like a block and could not be read."""

    why: str
    shown: str = ""
    """Its beginning."""


class ParsedBlocks(FrozenModel):
    """All blocks of a text in their order, and what only looked like one."""

    messages: tuple[MessageBlock, ...] = ()
    ignored: tuple[IgnoredBlock, ...] = ()


ADDRESSEES: dict[str, tuple[Address, ...]] = {
    "plan": ("EXECUTER",),
    "result": ("PLANNER",),
    "report": ("USER",),
    "status": ("PLANNER", "EXECUTER", "USER"),
    "blocker": ("PLANNER", "EXECUTER", "USER"),
}
"""Possible addressees of a message of each type."""


class AwaitedMessage(FrozenModel):
    """The message that a turn is to bring."""

    sender: Side
    types: tuple[MessageType, ...] = Field(min_length=1)
    """Any of these will do, and always a `blocker`."""
    task: NonEmpty
    nonce: NonEmpty
    """Of this turn alone. No block of a prompt has it, and where a screen is read a prompt names it in halves."""
    or_words: bool = False
    """Words without a block are an answer too: the whole of what was said when the turn is over."""
    longest_seconds: float = Field(default=14_400.0, gt=0)
    """However often it tells of its progress, which begins the turn's time anew."""

    @property
    def id(self) -> str:
        return f"{self.task}-{self.nonce}"

    def find_in(self, blocks: ParsedBlocks) -> MessageBlock | None:
        """The last that is the message. None: there is none."""
        return next(
            (message for message in reversed(blocks.messages) if self.is_met_by(message)), None
        )

    def is_met_by(self, message: MessageBlock) -> bool:
        """Tell whether this is the message: of the turn's id, of a type that was wanted, and for whom that is."""
        return message.type in (*self.types, "blocker") and not self.problem_of(message)

    def is_progress(self, message: MessageBlock) -> bool:
        """Tell whether the agent tells how far it is."""
        return message.type == "status" and not self.problem_of(message)

    def problem_of(self, message: MessageBlock) -> str:
        """The reason why it is no message of this turn. Empty: it is one."""
        if message.id != self.id:
            return "its id does not match this turn"
        if message.to == self.sender:
            return "it is addressed to its sender"
        if message.to not in ADDRESSEES.get(message.type, ()):
            return f"a message of type {message.type!r} cannot be addressed to {message.to!r}"
        return ""


def block_of(message: MessageBlock) -> str:
    """The message as a block, its body in its section."""
    header = json.dumps({"to": message.to, "type": message.type, "id": message.id})
    return f"[[{TAG} {header}]]\n{section_of(message)}\n[[/{TAG}]]"


def section_of(message: MessageBlock) -> str:
    """The body in its section, without the id of the turn that brought it."""
    section = SECTIONS.get(message.type, "")
    wrapped = message.body.startswith(f"<{section}>") and message.body.endswith(f"</{section}>")
    return message.body if wrapped or not section else f"<{section}>\n{message.body}\n</{section}>"


class TurnLimits(FrozenModel):
    """Limits of one turn. None means no limit of that kind."""

    seconds: float | None = 600.0
    tokens: int | None = None
    usd: float | None = None
    turns: int | None = None
    tool_calls: int | None = None
    """Calls that the turn may make, refused ones included."""
    same_results: int | None = None
    """Number of times in a row that the very same call may come to the very same result."""


StopKind = Literal["turns", "tool_calls", "same_results", "tokens", "usd", "minutes"]


class TurnStop(FrozenModel):
    """The limit that ended a turn before its agent was done."""

    kind: StopKind
    reason: str

    @property
    def exit_code(self) -> int:
        """That of a door that ends with it: time ran out, or something else did."""
        return 6 if self.kind == "minutes" else 5


class RequestedCall(FrozenModel):
    """A call that a model asked for."""

    id: str = ""
    """The provider's own name for it."""
    tool: str
    arguments: Json = None
    """As it wrote them: they may be no object, or no JSON."""


class ModelAnswer(FrozenModel):
    """One answer of a model within a turn, stored so that the turn can continue after a crash."""

    number: int
    """From 0, within the turn."""
    request: str
    """Digest of all that the model was asked: an answer to something else is of no use."""
    text: str = ""
    calls: tuple[RequestedCall, ...] = ()
    model: str = ""
    usage: Usage = Usage()
    sizes: dict[str, int] = Field(default_factory=dict)
    """Characters of the request by part: `instructions`, `tools`, `prompt`, `history`."""
    counted: bool = False
    """Of one from before: what it used was recorded with an attempt that failed, and counts only for limits."""
    kept: Json = None
    """The whole of it as whoever asked writes it down. None: it was too large to be kept."""


class Finish(FrozenModel):
    """An agent's word that it is done, given by the tool of that name."""

    summary: str
    payload: Json = None


PayloadSource = Literal["none", "native", "strict", "repaired"]
"""Source of a payload: none, the medium's own schema, plain JSON, or repaired JSON."""


class Turn(FrozenModel):
    """One question to an agent, complete in itself."""

    run_id: str
    step_key: str
    role: NonEmpty
    prompt: str
    native_prompt: str = ""
    """The prompt for a medium that holds the answer to the contract's schema itself: it names no nonce. Empty: `prompt`."""
    news: str = ""
    """The prompt for a conversation that goes on, in place of the one with which it begins."""
    workspace: str
    """Folder the agent works in."""
    session: str | None = None
    """Conversation to continue; None starts a fresh one."""
    limits: TurnLimits = TurnLimits()
    allowed_tools: tuple[str, ...] | None = None
    """Names of tools its calls may ask for. None: all that the gate allows."""
    own_tools: tuple[str, ...] | None = None
    """The agent's own tools beside files and shell that it may use, such as `web_search`. None: nothing more."""
    contract: type[BaseModel] | None = None
    """The model that the payload of the reply must validate as. None: text is enough."""
    nonce_slot: str = ""
    """Text that stands for the turn's nonce in the prompt's own examples of an answer. Empty: it has none."""
    provenance: tuple[str, ...] = ()
    """Untrusted sources that led to the turn."""
    asking: int = 0
    """Number of this attempt at asking in the step: a later one does again what an earlier one asked for."""
    awaits: AwaitedMessage | None = None
    """The message that it is to bring. An agent that hears all that was said need not look for it."""

    def prompt_for(self, *, native: bool) -> str:
        """The prompt for a medium that holds the answer to the contract's schema, or for one that does not."""
        return self.native_prompt if native and self.native_prompt else self.prompt


ReadFrom = Literal["", "transcript", "screen"]
"""Source of a terminal program's text: to the byte in its transcript, or from its screen."""


class Reply(FrozenModel):
    """Answer of an agent, validated."""

    text: str
    payload: Json = None
    found: PayloadSource = "none"
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
    """Warnings for a person, such as a version nobody has tried."""
    stopped: TurnStop | None = None
    """Set when a limit ended the turn; the text is then what was said until there."""
    waiting_approvals: tuple[str, ...] = Field(default=())
    """Approvals this turn's calls were told to wait for."""
    keeps_calls: bool = False
    """The calls that wait stay open in its conversation: when that goes on, Podium makes them and hands the results
    over before anything else is said. False: the agent has to make them again."""
    approval_deadlines: dict[str, UtcDatetime] = Field(default_factory=dict)
    """Until when each of them can be answered. Filled in by whoever asked the turn."""
    snapshot: WorktreeSnapshot | None = None
    """The workspace as a turn left it that waits for approvals: where the next turn starts. Filled in likewise."""


OWN_TOOL_NAMES: dict[str, tuple[str, ...]] = {
    "web_search": ("google_web_search", "WebSearch", "websearch"),
    "web_fetch": ("WebFetch", "webfetch"),
    "subagents": ("codebase_investigator", "generalist", "invoke_agent", "Task", "Agent", "task"),
}
"""The word that means the same for every agent → what single ones call it."""

GRANTED_AS = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "ask_subagent": "subagents",
    "own_tool": "own_tool",
}
"""Registered tools that a role must grant → the word for it."""

_COMMON_NAME = {name: token for token, names in OWN_TOOL_NAMES.items() for name in names}


def granted_names(own_tools: Iterable[str] | None) -> frozenset[str]:
    """The tools a role grants: the names as it has them, and the common name for each."""
    names = tuple(own_tools or ())
    return frozenset((*names, *(_COMMON_NAME.get(name, name) for name in names)))


def unknown_names(own_tools: Iterable[str] | None, available: Iterable[str]) -> tuple[str, ...]:
    """Names of a role that mean nothing to an agent that knows only these, by whatever word."""
    there = frozenset((*available, *(_COMMON_NAME.get(name, name) for name in available)))
    return tuple(name for name in own_tools or () if not granted_names((name,)) & there)


PairName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
