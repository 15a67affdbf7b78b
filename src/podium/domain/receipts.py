"""Proof of what was performed, and of what was reversed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from podium.domain.model import Json, Moment, Noun
from podium.domain.tiers import Tier
from podium.domain.usage import Usage


class Receipt(Noun):
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
    """Whose wish it was; empty when no agent's."""
    role: str = ""
    approval_id: str | None = None
    approved_by: tuple[str, ...] = ()
    approved_how: tuple[str, ...] = ()
    """How each of them was authenticated, in the same order. Empty: not recorded."""
    fields: dict[str, Json] = Field(default_factory=dict)
    """The result's `receipt_fields`."""
    error: str = ""
    usage: Usage = Usage()
    undo: dict[str, Json] | None = None
    """Call that would reverse this one, if the tool can say."""
    requested_at: Moment
    settled_at: Moment
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
            each
            for each in receipts
            if each.status == "completed" and each.fields.get("undoes") == name
        ),
        None,
    )
