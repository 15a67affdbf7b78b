"""The page of runs: all of them, newest first, live; and how one is started."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse, Response

from podium.domain.errors import BadInput
from podium.usecases import ShownStatus
from podium.usecases.see_runs import RunsPage, RunsWish, see_runs
from podium.web.access.entering import Operator, Viewer
from podium.web.access.people import ConsoleRole
from podium.web.desk import DeskHere
from podium.web.pages.rendering import page
from podium.web.pages.run_choices import choices_of
from podium.web.pages.run_starting import start_forms, wish_of
from podium.web.pages.run_words import evidence, status_words, tone
from podium.wiring.flows import FLOWS
from podium.wiring.submitting import submit

router = APIRouter()

Word = Annotated[str, Query(max_length=200)]


def _wish(status: Word = "", flow: Word = "", text: Word = "", before: Word = "") -> RunsWish:
    if status and status not in list(ShownStatus):
        raise BadInput(f"status {status[:60]!r} is not known; there are: {', '.join(ShownStatus)}")
    return RunsWish(status=status, flow=flow, text=text.strip(), before=before)


Wished = Annotated[RunsWish, Depends(_wish)]


@router.get("/runs")
async def runs_page(
    request: Request,
    desk: DeskHere,
    person: Viewer,
    wish: Wished,
) -> Response:
    found = await see_runs(await desk.store(), desk.podium.engine, wish)
    asked = _asked(wish)
    return page(
        request,
        "runs.html",
        found=found,
        wish=wish,
        states=list(ShownStatus),
        flows=sorted({*FLOWS, *([wish.flow] if wish.flow else [])}),
        older=_older(found, wish),
        further=_older(found, wish, "/runs/further"),
        newest=_address("/runs", **asked) if wish.before else "",
        live=urlencode({**asked, "before": wish.before}),
        filtered=any(asked.values()),
        may_start=person.may(ConsoleRole.OPERATOR),
        forms=start_forms(choices_of(desk.podium), may_approve=person.may(ConsoleRole.APPROVER)),
        evidence=evidence,
        tone=tone,
        status_words=status_words,
    )


@router.get("/runs/further")
async def further_runs(
    request: Request,
    desk: DeskHere,
    person: Viewer,
    wish: Wished,
) -> Response:
    """Rows that are found in the next portion of older runs, for a page that is open."""
    found = await see_runs(await desk.store(), desk.podium.engine, wish)
    return page(
        request,
        "runs_further.html",
        found=found,
        older=_older(found, wish),
        further=_older(found, wish, "/runs/further"),
        evidence=evidence,
        tone=tone,
        status_words=status_words,
    )


@router.post("/runs")
async def start_run(request: Request, desk: DeskHere, person: Operator) -> Response:
    form = await request.form()
    # Several ticks of one name are as many lines.
    filled = {
        name: "\n".join(value for value in form.getlist(name) if isinstance(value, str))
        for name in form
    }
    may_approve = person.may(ConsoleRole.APPROVER)
    run = await submit(
        desk.podium,
        wish_of(filled),
        by=person.name,
        may_approve=may_approve,
        approver=person.approver,
    )
    place = f"/runs/{run.id}"
    if "hx-request" in request.headers:
        # What was typed stays where it is when it was wrong; when it was right the page goes on.
        return Response(headers={"hx-redirect": place})
    return RedirectResponse(place, status_code=303)


def _asked(wish: RunsWish) -> dict[str, str]:
    return {"status": wish.status, "flow": wish.flow, "text": wish.text}


def _older(found: RunsPage, wish: RunsWish, path: str = "/runs") -> str:
    """Where older runs that fit are found. Empty: there are none."""
    before = found.next_before
    return _address(path, **_asked(wish), before=before) if before else ""


def _address(path: str, **asked: str) -> str:
    given = urlencode({name: value for name, value in asked.items() if value})
    return f"{path}?{given}" if given else path
