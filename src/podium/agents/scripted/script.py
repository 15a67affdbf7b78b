"""What a script says: for each role, what the agent says and does when it is asked."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from podium.domain.asking import Turn
from podium.domain.errors import BadInput
from podium.domain.model import Json, NonEmpty, Noun


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return text


class Act(Noun):
    """One thing the agent does. Exactly one of the keys is given, `with` only beside `call`."""

    say: str | None = None
    call: NonEmpty | None = None
    """Name of a tool that Podium shall use for it."""
    arguments: dict[str, Json] = Field(default_factory=dict, alias="with")
    dump_environment: bool | None = None
    """Say every variable it was given."""
    sleep_seconds: float | None = Field(default=None, ge=0)
    hang: bool | None = None
    """Never answer."""
    crash: int | None = None
    """End at once with this exit code and no answer."""
    flood_bytes: int | None = Field(default=None, ge=0)
    """Write so much to stdout."""
    ignore_sigterm: bool | None = None
    lie: bool | None = None
    """Answer with something that is no answer."""
    leave_child: bool | None = None
    """Start a process in a session of its own and go on without it."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = sorted(self.model_fields_set - {"arguments"})
        if len(given) != 1:
            raise ValueError(f"an act does exactly one thing, this one has {given or 'none'}")
        if self.arguments and self.call is None:
            raise ValueError("`with` goes with `call`")
        return self


class ScriptedTurn(Noun):
    """What a role does when it is asked and the prompt fits."""

    role: NonEmpty
    when: Annotated[str, AfterValidator(_expression)] = ""
    """Regular expression that the prompt must contain. Empty: any prompt."""
    acts: tuple[Act, ...] = ()
    reply: str = ""
    """Its last words. Empty: all that it said on the way."""


class AgentScript(Noun):
    """The whole part an agent plays."""

    turns: tuple[ScriptedTurn, ...] = Field(min_length=1)

    def turn_for(self, turn: Turn) -> int:
        """Number of the first turn that fits. Raises `BadInput` when the script has none."""
        for number, scripted in enumerate(self.turns):
            if scripted.role == turn.role and re.search(scripted.when, turn.prompt):
                return number
        raise BadInput(
            f"the script has no turn for role {turn.role!r} and this prompt; "
            f"roles in it: {', '.join(sorted({each.role for each in self.turns}))}"
        )
