"""Notices: follow the journal and send each outlet what waits for a person and what ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal

from podium.config.chat_settings import NoticeSettings
from podium.config.configuration import trusted_settings, untrusted_notice
from podium.core.calls import Tier
from podium.core.decisions import Approval, ApprovalStatus
from podium.core.errors import UserMustAct
from podium.core.events import ApprovalRequested, Event, RunFailed, RunNeededHuman
from podium.core.ids import short_id
from podium.core.model import FrozenModel
from podium.core.work import Run, RunStatus
from podium.ports import (
    DeliveryLog,
    DeliveryPosition,
    DeliveryStatus,
    EventQuery,
    Notice,
    NoticeChannel,
    NoticeItem,
    Store,
    StoreView,
)
from podium.render.approval import diff_counts, diff_lines, what_line
from podium.render.text import escaped_line

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.notices import FileDeliveryLog
    from podium.ports import NoticeChannel, Store


What = Literal["waits", "ended"]

WAITS = ("approval_requested", "run_needed_human")
ENDED = ("run_succeeded", "run_failed", "run_cancelled")

MAX_AT_ONCE = 10
"""Things in one message: a burst becomes few messages, and nobody's chat a flood."""
PAGE = 200
MAX_PROBLEM = 300
PAUSES_SECONDS = (1.0, 5.0, 30.0, 120.0, 300.0)
"""Before each other try; the last one again and again, for nothing is given up."""


class NoticeFilter(FrozenModel):
    """Filter of the events that a person wants notices of."""

    what: tuple[What, ...] = ("waits", "ended")
    flows: tuple[str, ...] = ()
    """Empty: of all."""
    min_tier: Tier = Tier.T0
    """Of approvals: this tier and above."""


class Happening(FrozenModel):
    """Something to be told, as things stand now."""

    what: What
    event: Event
    run: Run
    approval: Approval | None = None
    maybe_sent: bool = False
    """A message about it was begun before, and it is not known whether it arrived."""

    @property
    def card_id(self) -> str:
        """Of what a person looks at: the approval, else the run."""
        return self.approval.id if self.approval else self.run.id


Wording = Callable[[Sequence[Happening]], Notice]


class NoticeSender:
    """Keeps one outlet up with the journal: nothing left out, and nothing twice that is known to have arrived.

    What was answered before it could be told is not told any more.
    """

    def __init__(
        self,
        store: Store,
        book: DeliveryLog,
        outlet: NoticeChannel,
        notice_filter: NoticeFilter,
        wording: Wording,
        *,
        say: Callable[[str], None],
        pauses_seconds: Sequence[float] = PAUSES_SECONDS,
    ) -> None:
        """`say` tells whoever looks after this process of trouble, and of its end."""
        self._store = store
        self._book = book
        self._outlet = outlet
        self._filter = notice_filter
        self._wording = wording
        self._say = say
        self._pauses = pauses_seconds
        self._failures = 0
        self._sending: asyncio.Task[DeliveryPosition] | None = None

    async def catch_up(self) -> None:
        """Tell all there is. Waits a service out that does not take it."""
        progress = await self._progress()
        while True:
            happenings, position = await self._store.read(partial(_page, self._filter, progress))
            if position == progress.told:
                return
            before = progress
            if happenings:
                self._sending = asyncio.create_task(self._send(happenings, progress, position))
                progress = await asyncio.shield(self._sending)
            else:
                progress = await self._save(progress.model_copy(update={"told": position}))
            if progress.told == before.told:
                await asyncio.sleep(self._pauses[min(self._failures, len(self._pauses)) - 1])

    def stumbled(self, error: Exception) -> None:
        """Take note that catching up raised, such as when the record could not be read."""
        self._report(
            DeliveryStatus(done=False, why=f"{type(error).__name__}: {error}"[:MAX_PROBLEM])
        )

    async def close(self, seconds: float) -> None:
        """Wait for a message that is on its way, so that its end is known. Call it when nobody catches up."""
        if self._sending is not None and not self._sending.done():
            await asyncio.wait([self._sending], timeout=seconds)
            self._sending.cancel()

    async def _progress(self) -> DeliveryPosition:
        stored = await asyncio.to_thread(self._book.position, self._outlet.name)
        if stored is not None:
            return stored
        # Whoever is told for the first time has no use for the past.
        last = await self._store.read(lambda view: view.last_position())
        return await self._save(DeliveryPosition(told=last))

    async def _send(
        self, happenings: Sequence[Happening], progress: DeliveryPosition, position: int
    ) -> DeliveryPosition:
        doubtful = DeliveryPosition(told=progress.told, telling=max(position, progress.telling))
        await self._save(doubtful)
        status = await self._outlet.send(self._wording(happenings))
        self._report(status)
        if status.done:
            return await self._save(DeliveryPosition(told=position, telling=progress.telling))
        return doubtful if status.in_doubt else await self._save(progress)

    def _report(self, status: DeliveryStatus) -> None:
        if status.done and self._failures:
            self._say(f"notices to {self._outlet.name} are delivered again")
        elif not status.done and not self._failures:
            self._say(
                f"a notice to {self._outlet.name} could not be delivered; retrying: {status.why}"
            )
        self._failures = 0 if status.done else self._failures + 1

    async def _save(self, progress: DeliveryPosition) -> DeliveryPosition:
        await asyncio.to_thread(self._book.save, self._outlet.name, progress)
        return progress


def _page(
    notice_filter: NoticeFilter, progress: DeliveryPosition, view: StoreView
) -> tuple[list[Happening], int]:
    """Next events to send, and the position after which the rest begins."""
    types = (
        *(WAITS if "waits" in notice_filter.what else ()),
        *(ENDED if "ended" in notice_filter.what else ()),
    )
    query = EventQuery(types=types, after_position=progress.told, limit=PAGE)
    events = view.events(query)
    happenings: list[Happening] = []
    for event in events:
        happenings.extend(
            _happenings_of(
                view, notice_filter, event, maybe_sent=event.position <= progress.telling
            )
        )
        if len(happenings) == MAX_AT_ONCE:
            return happenings, event.position
    return happenings, events[-1].position if events else progress.told


def _happenings_of(
    view: StoreView, notice_filter: NoticeFilter, event: Event, *, maybe_sent: bool
) -> Iterator[Happening]:
    run = view.run(event.run_id)
    if run is None or (notice_filter.flows and run.flow not in notice_filter.flows):
        return
    body = event.body
    if isinstance(body, ApprovalRequested):
        asked = view.approval(body.approval_id)
        if (
            asked
            and asked.status is ApprovalStatus.PENDING
            and asked.tier >= notice_filter.min_tier
        ):
            yield Happening(
                what="waits", event=event, run=run, approval=asked, maybe_sent=maybe_sent
            )
    elif isinstance(body, RunNeededHuman):
        if run.status is RunStatus.NEEDS_HUMAN:
            yield Happening(what="waits", event=event, run=run, maybe_sent=maybe_sent)
    elif run.parent_id is None:
        # The end of a part is told with the whole.
        yield Happening(what="ended", event=event, run=run, maybe_sent=maybe_sent)


MAX_WHAT = 300
MAX_TASK = 120
MAX_DIFF_LINES = 8
MAX_DIFF_LINE_CHARS = 100
_ENDS = {"run_succeeded": "succeeded", "run_failed": "failed", "run_cancelled": "was cancelled"}


def notice_of(
    happenings: Sequence[Happening],
    *,
    link_to: Callable[[str], str],
    redact: Callable[[str], str],
) -> Notice:
    """One message about all of them. `link_to` gives the address of a card; empty: there is none."""
    waiting = sum(happening.what == "waits" for happening in happenings)
    ended = len(happenings) - waiting
    counts = (f"{waiting} waiting for you" if waiting else "", f"{ended} ended" if ended else "")
    parts = tuple(
        NoticeItem(text=redact(notice_text(happening)), link=link_to(happening.card_id))
        for happening in happenings
    )
    return Notice(title="Podium: " + ", ".join(filter(None, counts)), parts=parts)


def notice_text(happening: Happening) -> str:
    """Text of a notice, with invisible characters escaped."""
    lines = _waits(happening) if happening.what == "waits" else _outcome_lines(happening)
    again = ["(possibly a repeat: the connection was lost)"] if happening.maybe_sent else []
    return "\n".join([*lines, *again])


def _waits(happening: Happening) -> list[str]:
    approval, body = happening.approval, happening.event.body
    if approval is None:
        reason = body.reason if isinstance(body, RunNeededHuman) else ""
        return [f"{_run(happening.run)} needs a person: {escaped_line(reason, MAX_WHAT)}"]
    cut = what_line(approval)
    what = cut if len(cut) <= MAX_WHAT else cut[: MAX_WHAT - 1] + "…"
    until = f"{approval.deadline:%Y-%m-%d %H:%M} UTC"
    return [
        f"{approval.tier} waits for approval: {what}",
        *_replaced(approval.diff),
        f"asked by {_run(happening.run)}",
        f"until {until}. APPROVE: {short_id(approval.id)}",
    ]


def _replaced(diff: str) -> list[str]:
    """Changed lines of a write, shortened for a phone."""
    if not diff:
        return []
    changed = [line for line in diff_lines(diff) if line.startswith(("-", "+"))]
    lines = [escaped_line(line, MAX_DIFF_LINE_CHARS) for line in changed[:MAX_DIFF_LINES]]
    more = len(changed) - len(lines)
    return [diff_counts(diff), *lines, *([f"… and {more} more changed lines"] if more else [])]


def _outcome_lines(happening: Happening) -> list[str]:
    body = happening.event.body
    why = f"{body.failure.kind}: {body.failure.message}" if isinstance(body, RunFailed) else ""
    reason = f": {escaped_line(why, MAX_WHAT)}" if why else ""
    return [f"{_run(happening.run)} {_ENDS[body.type]}{reason}"]


def _run(run: Run) -> str:
    task = f" “{escaped_line(run.task, MAX_TASK)}”" if run.task else ""
    return f"run {short_id(run.id)} ({run.flow}){task}"


PathTo = Callable[[str, NoticeSettings], str]
"""The path of a card's own page for whoever this notice is for, beginning with `/`."""

NOTICES_FOLDER = "notices"
HOLD_PAUSE_SECONDS = 5.0
"""Interval at which a console that does not send checks if the sending one is gone."""
CLOSE_SECONDS = 5.0
"""Time that closing waits for a message being sent."""


@asynccontextmanager
async def notice_service(
    podium: Podium,
    *,
    console_url: str = "",
    path_to: PathTo | None = None,
    pauses_seconds: Sequence[float] = PAUSES_SECONDS,
    hold_pause_seconds: float = HOLD_PAUSE_SECONDS,
) -> AsyncIterator[None]:
    """While open, everybody in `notices` is told. What cannot be set up is said, and the rest goes on.

    `console_url` is where people reach the console, such as https://podium.example.org; without it, or
    without `path_to`, notices have no links.
    """
    if problem := untrusted_notice(podium.configuration, "notices"):
        podium.notify(problem)
    wished = trusted_settings(podium.configuration, "notices").notices
    if not wished:
        yield
        return
    from podium.notices import FileDeliveryLog

    book = FileDeliveryLog(podium.folders.make_state() / NOTICES_FOLDER)
    store = await podium.store()

    def link_to(settings: NoticeSettings, card_id: str) -> str:
        return (
            console_url.rstrip("/") + path_to(card_id, settings) if console_url and path_to else ""
        )

    senders = [
        NoticeSender(
            store,
            book,
            outlet,
            _filter(settings),
            partial(notice_of, link_to=partial(link_to, settings), redact=podium.redactor.text),
            say=podium.notify,
            pauses_seconds=pauses_seconds,
        )
        for settings, outlet in _outlets(podium, wished)
    ]
    task = asyncio.create_task(_keep_sending(podium, store, book, senders, hold_pause_seconds))
    task.add_done_callback(partial(_report_failure, podium))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        await asyncio.gather(*(sender.close(CLOSE_SECONDS) for sender in senders))
        book.let_go()


async def _keep_sending(
    podium: Podium,
    store: Store,
    book: FileDeliveryLog,
    senders: Sequence[NoticeSender],
    hold_pause_seconds: float,
) -> None:
    from podium.telemetry.event_feed import keep_up

    await _hold(podium, book, hold_pause_seconds)
    async with asyncio.TaskGroup() as group:
        for sender in senders:
            group.create_task(keep_up(store, sender.catch_up, sender.stumbled))


async def _hold(podium: Podium, book: FileDeliveryLog, pause_seconds: float) -> None:
    """Wait until no other process sends notices. A problem with the lock is reported once, and retried."""
    troubled = False
    while True:
        try:
            if await asyncio.to_thread(book.try_hold):
                break
        except OSError as error:
            if not troubled:
                podium.notify(f"notices cannot be sent yet; retrying: {error}")
            troubled = True
        await asyncio.sleep(pause_seconds)
    if troubled:
        podium.notify("notices are sent again")


def _report_failure(podium: Podium, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        podium.notify(f"notices have stopped: {type(error).__name__}: {error}; restart the console")


def _outlets(
    podium: Podium, wished: Sequence[NoticeSettings]
) -> list[tuple[NoticeSettings, NoticeChannel]]:
    """Those whose URL is there. Of the others a person is told."""
    from podium.notices import AppriseChannel

    outlets: list[tuple[NoticeSettings, NoticeChannel]] = []
    for settings in wished:
        secret = settings.to.removeprefix("secret://")
        try:
            url = podium.resolve_secret(secret)
        except UserMustAct as error:
            podium.notify(f"no notices are sent to {settings.to}: {error}")
            continue
        same = sum(other.to == settings.to for other, _ in outlets)
        name = f"{secret}.{same + 1}" if same else secret
        outlets.append((settings, AppriseChannel(name, url, redact=podium.redactor.text)))
    return outlets


def _filter(settings: NoticeSettings) -> NoticeFilter:
    return NoticeFilter(what=settings.what, flows=settings.flows, min_tier=Tier[settings.min_tier])
