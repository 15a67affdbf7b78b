"""The script of an agent: for each role, what it says and does when it is asked."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from podium.core.errors import BadInput
from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.turns import Turn

Flag = Literal[True] | None
"""An act without details. To leave it out, leave the line out."""

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, le=31 * 86_400, allow_inf_nan=False)]

FailureKind = Literal[
    "not_logged_in", "rate_limited", "unavailable", "overflow", "refused", "rejected"
]


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return text


class ScriptedWrite(FrozenModel):
    """A file that the agent writes itself."""

    path: NonEmpty
    content: str = ""


class ScriptedFailure(FrozenModel):
    """A failure of its provider."""

    kind: FailureKind
    retry_seconds: Seconds | None = None
    """With `rate_limited`: how long until it may be asked again."""

    @model_validator(mode="after")
    def _only_a_limit_is_lifted(self) -> Self:
        if self.retry_seconds is not None and self.kind != "rate_limited":
            raise ValueError("`retry_seconds` goes with `kind: rate_limited`")
        return self


class ScriptedUsage(FrozenModel):
    """Usage that it reports. Several of a turn are added up."""

    input: Count = 0
    output: Count = 0
    usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0


class Act(FrozenModel):
    """One thing the agent does. Exactly one of the keys is given.

    Beside it, `with` may stand with `call`, and `ignore_the_gate` with what it does itself.
    """

    say: str | None = None
    call: NonEmpty | None = None
    """Name of a tool that Podium shall use for it."""
    arguments: dict[str, Json] = Field(default_factory=dict, alias="with")
    write: ScriptedWrite | None = None
    """Write a file itself, once Podium has allowed it."""
    run: NonEmpty | None = None
    """Run a shell line itself, once Podium has allowed it."""
    commit: NonEmpty | None = None
    """Commit everything itself with this message, once Podium has allowed it."""
    ignore_the_gate: Flag = None
    """Do that without asking. Only a sandbox can stop it."""
    payload: dict[str, Json] | None = None
    """End its last words with this object, as JSON in a fence."""
    usage: ScriptedUsage | None = None
    fail: ScriptedFailure | None = None
    """End without an answer, and say why."""
    dump_environment: Flag = None
    """Say every variable it was given."""
    sleep_seconds: Seconds | None = None
    hang: Flag = None
    """Never answer."""
    crash: Annotated[int, Field(ge=0, le=255)] | None = None
    """End at once with this exit code and no answer."""
    flood_bytes: Count | None = None
    """Write so much to stdout that is no answer."""
    bad_bytes: Flag = None
    """Say something that is no UTF-8."""
    ignore_sigterm: Flag = None
    lie: Flag = None
    """Answer with something that is no answer."""
    truncate: Count | None = None
    """Cut the answer off after so many bytes, and end as if all were well."""
    leave_child: Flag = None
    """Start a process in a session of its own and go on without it."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        beside = {"arguments", "ignore_the_gate"}
        keys = sorted(
            name for name in self.model_fields_set - beside if getattr(self, name) is not None
        )
        if len(keys) != 1:
            raise ValueError(f"an act does exactly one thing, this one has {keys or 'none'}")
        if self.arguments and self.call is None:
            raise ValueError("`with` goes with `call`")
        if self.ignore_the_gate and keys[0] not in ("write", "run", "commit"):
            raise ValueError("`ignore_the_gate` goes with `write`, `run` or `commit`")
        return self


class ScriptedTurn(FrozenModel):
    """The acts of a role when it is asked and the prompt fits."""

    role: NonEmpty
    when: Annotated[str, AfterValidator(_expression)] = ""
    """Regular expression that the prompt must contain. Empty: any prompt."""
    acts: tuple[Act, ...] = ()
    reply: str = ""
    """Its last words. Empty: all that it said on the way."""

    def fits(self, turn: Turn) -> bool:
        return self.role == turn.role and re.search(self.when, turn.prompt) is not None


class AgentScript(FrozenModel):
    """The whole part an agent plays."""

    turns: tuple[ScriptedTurn, ...] = Field(min_length=1)

    def turn_for(self, turn: Turn, after: int | None = None) -> int:
        """Number of the turn that fits. Raises `BadInput` when the script has none.

        That is the first one; in a conversation that has come to `after`, the first one behind it
        where there is any.
        """
        fitting = [number for number, scripted in enumerate(self.turns) if scripted.fits(turn)]
        if not fitting:
            raise BadInput(
                f"the script has no turn for role {turn.role!r} and this prompt; "
                f"roles in it: {', '.join(sorted({scripted.role for scripted in self.turns}))}"
            )
        return next(
            (number for number in fitting if after is not None and number > after), fitting[0]
        )
