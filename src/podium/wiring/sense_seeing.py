"""The sense loop of this root, looked at as a whole for whoever shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import yaml
from pydantic import ValidationError

from podium.domain.gating import Approval, ApprovalStatus
from podium.domain.orders import WorkOrder
from podium.domain.trust import standings
from podium.flows.sense import SenseOptions
from podium.ports import View
from podium.usecases import CandidateSeen
from podium.usecases.see_sense import CandidateCard, SenseSeen
from podium.wiring.candidates import candidates_seen
from podium.wiring.order_text import order_text
from podium.wiring.sense_settings import sense_mode
from podium.wiring.sensing import record_of, sense_options, trust_of

if TYPE_CHECKING:
    from podium.wiring.podium import Podium

MOST_TICKS = 20
MOST_CANDIDATES = 40


async def see_sense(podium: Podium) -> SenseSeen:
    """As `podium sense status`, `candidates` and `sense trust` tell it, in one look. Changes nothing."""
    options = sense_options(podium)
    from_files = await asyncio.to_thread(_from_files, podium, options)
    found = (
        await candidates_seen(podium, ended=True, limit=MOST_CANDIDATES)
        if podium.has_record
        else []
    )
    return from_files.model_copy(update={"candidates": await _cards(podium, found)})


def _from_files(podium: Podium, options: SenseOptions) -> SenseSeen:
    from podium.bridge.ticks import last_ticks

    record, book = record_of(podium, options), trust_of(podium)
    entries = book.entries()
    return SenseSeen(
        at=podium.clock.now(),
        mode=sense_mode(podium.configuration, podium.environ),
        planner=options.planner,
        every_seconds=options.every_seconds,
        promote_after=options.promote_after,
        memory=record.memory(),
        ticks=last_ticks(podium.folders.project, options.layout.telemetry, most=MOST_TICKS),
        trust=standings(entries),
        faults=(*book.faults, *record.faults),
    )


async def _cards(podium: Podium, found: Sequence[CandidateSeen]) -> tuple[CandidateCard, ...]:
    """What is still open comes first, each newest first."""
    if not found:
        return ()
    ordered = sorted(found, key=lambda each: not each.open)
    store = await podium.store()
    return await store.read(lambda view: tuple(_card(view, each) for each in ordered))


def _card(view: View, seen: CandidateSeen) -> CandidateCard:
    approvals = view.approvals(run_id=seen.standing.run_id, limit=1)
    approval = approvals[0] if approvals else None
    text = _text(view, seen.standing.run_id, approval)
    pending = approval is not None and approval.status is ApprovalStatus.PENDING
    return CandidateCard(
        seen=seen, order=_order(text), text=text, asked=approval if pending else None
    )


def _text(view: View, run_id: str, approval: Approval | None) -> str:
    """As somebody was asked about it, else as it was planned."""
    if approval is not None:
        return str(approval.arguments.get("content", ""))
    run = view.run(run_id)
    try:
        return order_text(WorkOrder.model_validate(run.input["order"])) if run else ""
    except (ValidationError, KeyError, TypeError):
        return ""


def _order(text: str) -> WorkOrder | None:
    try:
        return WorkOrder.model_validate(yaml.safe_load(text))
    except (ValidationError, yaml.YAMLError):
        return None
