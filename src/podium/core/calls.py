"""Calls of tools: the tool's specification, risk tiers and receipts."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Literal

from pydantic import Field

from podium.core.budgets import Usage
from podium.core.model import FrozenModel, Json, NonEmpty, UtcDatetime, digest_of


class Tier(IntEnum):
    """Risk, computed and never self-reported."""

    T0 = 0
    """Reads and analysis."""
    T1 = 1
    """Local artefacts that are easily undone."""
    T2 = 2
    """Changes to a repository, a schema or shared state."""
    T3 = 3
    """Words or effects that leave the machine."""
    T4 = 4
    """Acts that cannot be taken back."""

    def __str__(self) -> str:
        return self.name


class TierTerm(FrozenModel):
    """One line of the tier's arithmetic: the tier is the highest of them."""

    tier: Tier
    because: str


class Access(StrEnum):
    """The kind of access that a call wants to a path."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"


class PathUse(FrozenModel):
    """A path a call touches, after symlinks and `..` are resolved."""

    argument: str
    given: str
    real: str
    """Absolute real path; for a path that does not exist yet, of its nearest real parent plus the rest."""
    access: Access


class PathArgument(FrozenModel):
    """An argument of a tool that is a path, and the access to it."""

    name: NonEmpty
    access: Access
    glob_argument: str | None = None
    """The tool reads the files beneath the path that this argument names, all without it."""


class FileVersion(FrozenModel):
    """A file of the workspace that a call depends on, as it was when the call was made."""

    path: str
    """Relative to the workspace."""
    sha256: str
    """Of its content; of its first megabyte, size and time of change when it is larger."""


class ToolSpec(FrozenModel):
    """The registry's description of a tool. The handler is not part of it."""

    name: NonEmpty
    description: str = ""
    input_schema: dict[str, Json] = Field(default_factory=lambda: {"type": "object"})
    tier: Tier
    receipt_fields: tuple[str, ...] = ()
    """Fields of the result that go on the receipt."""
    idempotent: bool = False
    """Doing it twice under one key is the same as once; a crash in between is then no doubt."""
    timeout_seconds: float = 60.0
    undo: str | None = None
    """Name of the tool that reverses this one, if any."""
    paths: tuple[PathArgument, ...] = ()
    command_argument: str | None = None
    """The argument that holds an argv list or a shell line, if any."""
    observed_only: bool = False
    """True: agents have it themselves, Podium judges and records it and cannot perform it."""
    approvals: tuple[str, ...] = ()
    """Groups that must approve, in order. Empty: one approval by anybody allowed to."""
    tier_argument: str | None = None
    """The argument that says what was computed of something it hands on, such as the tier of a work order."""
    in_dry_run: Literal["nothing", "ask", "act"] = "nothing"
    """Its part in a dry run: nothing; asks people, records their answer and does nothing; or does it,
    because all it makes is for people to review."""

    within_workspace: Literal["no", "files", "commands"] = "no"
    """True if all that it changes lies in its workspace: by what it writes itself, or by commands that the kernel
    holds there."""

    offered: Literal["always", "in_git", "by_name", "without_contract"] = "always"
    """To which turns it is shown: to all, where the workspace is a git repository, where the role names it, or where the
    answer has no contract to fit."""

    def digest(self) -> str:
        # Approvals that people have given are bound to it: what tells only of rollback or of offering is no part of it.
        return digest_of(self.model_dump(mode="json", exclude={"within_workspace", "offered"}))


class PlanPosition(FrozenModel):
    """The position of a call in the plan that its run is for."""

    step: int
    """From 1."""
    approval_id: str | None = None
    """The approval that released the plan, if it needed one."""
    undoes: str = ""
    """The receipt that this call reverses, as `RUN#NUMBER`."""
    planned_at: UtcDatetime | None = None
    """Time at which the plan was shown: what is changed later was not what people said yes to."""


class Call(FrozenModel):
    """A wish to use a tool, normalised: arguments complete, paths real, command split."""

    run_id: str
    step_key: str
    index: int
    """Number of earlier calls with the same tool and arguments in this step."""
    tool: NonEmpty
    arguments: dict[str, Json] = Field(default_factory=dict)
    paths: tuple[PathUse, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    """The simple commands the call would start, each as argv. Empty when it starts none."""
    undecidable: str = ""
    """The reason why the command line could not be split into simple commands; empty when it could."""
    files: tuple[FileVersion, ...] = ()
    """Files of the workspace that the commands name, or that the call would overwrite."""
    role: str = ""
    agent: str = ""
    provenance: tuple[str, ...] = ()
    """Untrusted sources that led to this call."""
    observed: bool = False
    """True: a CLI performs it in its workspace; False: Podium performs it."""
    root: str = ""
    """Real path of the workspace it is made in. Empty: that of the door it comes to."""
    plan: PlanPosition | None = None
    """Set for a call of a plan: a yes to the plan is a yes to it, if the door finds it there."""

    @property
    def key(self) -> str:
        """The idempotency key: run : step : call.

        It names what is wished for and not when it was: an agent that is asked again after a crash
        may word its calls in another order, and each still finds its own record.
        """
        return f"{self.run_id}:{self.step_key}:{self.fingerprint}.{self.index}"

    @cached_property
    def fingerprint(self) -> str:
        """Short digest of tool and arguments."""
        return call_fingerprint(self.tool, self.arguments)

    def digest(self, spec: ToolSpec | None = None, spec_digest: str = "") -> str:
        """The digest that an approval is bound to: of the tool as registered, the arguments, what they touch.

        The content of files that a command names or a write replaces is part of it. `spec_digest` is the spec's own, for
        who knows it already.
        """
        if not self.files:
            return self.meaning(spec, spec_digest)
        files = [file.model_dump(mode="json") for file in self.files]
        return digest_of({**self._meant(spec, spec_digest), "files": files})

    def meaning(self, spec: ToolSpec | None = None, spec_digest: str = "") -> str:
        """The digest without the content of files: a call that was done may have changed those."""
        return digest_of(self._meant(spec, spec_digest))

    def _meant(self, spec: ToolSpec | None, spec_digest: str) -> dict[str, Json]:
        return {
            "tool": self.tool,
            "spec": spec_digest or (spec.digest() if spec else ""),
            "arguments": self.arguments,
            "paths": [path.model_dump(mode="json") for path in self.paths],
            "commands": self.commands,
            "run": self.run_id,
            "root": self.root,
        }


def call_fingerprint(tool: str, arguments: dict[str, Json]) -> str:
    """Short digest of what is wished for."""
    return digest_of([tool, arguments]).removeprefix("sha256:")[:12]


class Receipt(FrozenModel):
    """Proof that a call was performed: chained per run, sealed with a key outside the database."""

    run_id: str
    number: int
    call_key: str
    tool: str
    digest: str
    status: Literal["completed", "failed", "in_doubt", "abandoned", "rolled_back"]
    tier: Tier
    rule: str
    agent: str = ""
    """The agent that asked for it; empty when none did."""
    role: str = ""
    approval_id: str | None = None
    approved_by: tuple[str, ...] = ()
    approved_how: tuple[str, ...] = ()
    """Authentications of each of them, in the same order. Empty: not recorded."""
    fields: dict[str, Json] = Field(default_factory=dict)
    """The result's `receipt_fields`."""
    error: str = ""
    usage: Usage = Usage()
    undo: dict[str, Json] | None = None
    """Call that would reverse this one, if the tool can say."""
    requested_at: UtcDatetime
    settled_at: UtcDatetime
    previous: str = ""
    """Seal of the receipt before it; empty for the first."""
    seal: str = ""


def undo_counter(name: str) -> str:
    """The counter that is above zero from the moment that a reversal of `RUN#NUMBER` is permitted."""
    return f"undo:{name}"


def undone_by(receipts: Iterable[Receipt], name: str) -> Receipt | None:
    """The receipt that proves the reversal of the one called `RUN#NUMBER`, if there is one."""
    return next(
        (
            receipt
            for receipt in receipts
            if receipt.status == "completed" and receipt.fields.get("undoes") == name
        ),
        None,
    )
