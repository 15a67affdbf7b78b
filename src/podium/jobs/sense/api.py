"""`/api/v1/candidates` and work orders: what the loop proposes, what is in the inbox, what was answered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi import APIRouter

from podium.app.approvals import reject
from podium.app.inbox import resolve_approval
from podium.core.decisions import Approval
from podium.core.errors import NotPossibleNow, UnknownId
from podium.core.model import FrozenModel
from podium.core.work import Run
from podium.jobs.sense.candidates import (
    CandidateView,
    deploy_candidate,
    load_candidate,
    load_candidates,
)
from podium.jobs.sense.composition import inbox_of, sense_options
from podium.jobs.sense.orders.work_order import ORDER_ID, Ack, Claim
from podium.web.access.authentication import Approver, Viewer
from podium.web.api.approvals import No
from podium.web.api.requests import Name, NameQuery, Rows
from podium.web.context import CurrentContext

if TYPE_CHECKING:
    from podium.app.app import Podium


def see_answer(podium: Podium, wo_id: str) -> Ack:
    """Return the answer to a work order. Raises `UnknownId` where there is none. May block."""
    named = ORDER_ID.fullmatch(wo_id) is not None
    ack = inbox_of(podium, sense_options(podium)).answered(wo_id) if named else None
    if ack is None:
        raise UnknownId("work order", wo_id)
    return ack


router = APIRouter(tags=["candidates"])

PATIENCE_SECONDS = 10.0
"""Seconds to wait for a delivery; the process that serves its queue continues afterwards."""


class CandidateListed(FrozenModel):
    state: str
    """State of the candidate; a worker's answer takes precedence."""
    seen: CandidateView


class CandidatesListed(FrozenModel):
    candidates: tuple[CandidateListed, ...]


class CandidateDetail(FrozenModel):
    state: str
    seen: CandidateView
    run: Run


class OrdersListed(FrozenModel):
    """Files of work orders: waiting, skipped and claimed."""

    waiting: tuple[str, ...]
    """Names of those in the inbox, oldest first."""
    passed_over: tuple[str, ...]
    """Those that are left where they are, and why."""
    claimed: tuple[Claim, ...]


@router.get("/candidates")
async def list_candidates(
    context: CurrentContext, person: Viewer, ended: bool = False, limit: Rows = 200
) -> CandidatesListed:
    """List the open candidates, or with `ended` all of them, newest first."""
    views = await load_candidates(context.podium, ended=ended, limit=limit)
    return CandidatesListed(candidates=tuple(map(_listed, views)))


@router.get("/candidates/{candidate}")
async def show_candidate(
    context: CurrentContext, person: Viewer, candidate: Name
) -> CandidateDetail:
    """One candidate, by the id of its work order, its run or its approval."""
    view, run = await load_candidate(context.podium, candidate)
    return CandidateDetail(state=view.state, seen=view, run=run)


@router.post("/candidates/{candidate}/deploy")
async def deploy(
    context: CurrentContext, person: Approver, candidate: Name, approval: NameQuery = ""
) -> CandidateListed:
    """Approve a candidate and deliver it to the inbox. The approval is durable when this returns.

    With `approval`, only that approval is granted; refused if another one is pending now.
    """
    view = await deploy_candidate(
        context.podium, candidate, by=person.approver, asked=approval, most_seconds=PATIENCE_SECONDS
    )
    return _listed(view)


@router.post("/candidates/{candidate}/reject")
async def reject_candidate(
    context: CurrentContext, person: Approver, candidate: Name, no: No
) -> Approval:
    """Reject a candidate that is waiting for approval, permanently."""
    store, podium = await context.store(), context.podium
    candidate_view, _ = await load_candidate(podium, candidate)
    if not candidate_view.standing.approval_id:
        raise NotPossibleNow(
            f"candidate {candidate_view.standing.wo_id} is not waiting for approval; it is {candidate_view.state}"
        )
    meant = await store.read(
        lambda view: resolve_approval(view, candidate_view.standing.approval_id)
    )
    return await reject(store, podium.clock, podium.ids, meant, by=person.approver, why=no.why)


@router.get("/work-orders", tags=["work orders"])
async def list_work_orders(context: CurrentContext, person: Viewer) -> OrdersListed:
    """Work orders in the inbox, and those that a worker has taken."""
    return await asyncio.to_thread(_orders, context.podium)


@router.get("/work-orders/{order}", tags=["work orders"])
async def show_work_order(context: CurrentContext, person: Viewer, order: Name) -> Ack:
    """Return the worker's answer to a work order: the acknowledgement in the outbox."""
    return await asyncio.to_thread(see_answer, context.podium, order)


def _listed(view: CandidateView) -> CandidateListed:
    return CandidateListed(state=view.state, seen=view)


def _orders(podium: Podium) -> OrdersListed:
    inbox = inbox_of(podium, sense_options(podium))
    waiting = tuple(inbox.waiting())
    return OrdersListed(
        waiting=waiting, passed_over=tuple(inbox.passed_over), claimed=tuple(inbox.claims())
    )
