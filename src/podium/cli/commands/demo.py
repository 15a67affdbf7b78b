"""`podium demo`."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.demo_story import DemoFailed, Story, make_sample
from podium.cli.door import run_to_end
from podium.cli.event_words import event_line
from podium.cli.screen import Screen
from podium.domain.errors import BadInput, ToolMissing
from podium.domain.events import Event
from podium.domain.gating import Receipt
from podium.domain.model import Noun
from podium.ports import EventQuery
from podium.usecases import Verdict, verify_receipts
from podium.wiring import Podium, load_configuration, open_podium

app = command_app()

LAST_LINES = 8


@app.command()
def demo(
    context: typer.Context,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="Make the sample project here and keep it."),
    ] = None,
) -> None:
    """See Podium work, offline and without keys: refused, asked, failed, killed, resumed, proved.

    A scripted agent works in a sample project that is made for it. Its process is killed in the
    middle and the run is resumed. At the end the trace is shown and every receipt is checked.

    \b
    Example:
      podium demo
      podium demo --keep sample && cd sample && podium runs
    """
    if shutil.which("git") is None:
        raise ToolMissing("the demo needs git; install it and run this again")
    screen = Screen(json=context.obj.json)
    folder = _folder(keep)
    kept = keep is not None
    try:
        told = run_to_end(_perform(folder, screen, kept=kept))
    except DemoFailed as error:
        kept = True
        raise DemoFailed(f"{error}; the sample project is kept in {folder}") from error
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
    screen.answer(told.record(), lambda: _show(screen, told, keep))
    raise typer.Exit(0 if told.verdict.sound else 1)


class Told(Noun):
    """What the demo has to show for itself."""

    run: str
    kills: int
    approved: tuple[str, ...]
    receipts: tuple[Receipt, ...]
    verdict: Verdict
    trace: str
    trace_lines: int
    last_events: tuple[Event, ...]
    seconds: float

    def record(self) -> dict[str, object]:
        return self.model_dump(mode="json", exclude={"last_events"})


def _folder(keep: Path | None) -> Path:
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="podium-demo-")).resolve()
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise BadInput(f"{str(keep)!r} is there already; name a new folder for the sample project")
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{str(keep)!r} cannot be made: {error.strerror}; name a folder you may write to"
        ) from None
    return keep.resolve()


async def _perform(folder: Path, screen: Screen, *, kept: bool) -> Told:
    began = time.monotonic()
    environ = dict(os.environ)
    if not kept:
        # A home of its own: what is thrown away leaves nothing in yours. What is kept must still be
        # proved later, so its key lies where yours do.
        environ["PODIUM_HOME"] = str(folder / ".podium" / "home")
    words = _Silent() if screen.json else screen
    await asyncio.to_thread(make_sample, folder, environ)
    words.line(f"A sample project in {folder}; a scripted agent plays three scenes.\n")
    story = Story(folder, environ, words)
    async with open_podium(load_configuration(environ, project=folder), environ) as podium:
        await story.tell(await podium.journal())
        return await _told(podium, story, time.monotonic() - began)


class _Silent(Screen):
    """Says nothing on the way: with `--json` the answer stands alone."""

    def line(self, text: str = "") -> None:
        return


async def _told(podium: Podium, story: Story, seconds: float) -> Told:
    store = await podium.store()
    verdict = await verify_receipts(store, await podium.verifier())
    receipts = await store.read(lambda view: view.receipts(story.run_id))
    events = await store.read(lambda view: view.events(EventQuery(run_id=story.run_id)))
    trace = podium.folders.state / "runs" / story.run_id / "execution_trace.jsonl"
    return Told(
        run=story.run_id,
        kills=story.kills,
        approved=tuple(story.approvals),
        receipts=tuple(receipts),
        verdict=verdict,
        trace=str(trace),
        trace_lines=len(trace.read_text().splitlines()),
        last_events=tuple(events[-LAST_LINES:]),
        seconds=round(seconds, 1),
    )


def _rule(receipt: Receipt) -> str:
    if receipt.approval_id is None:
        return receipt.rule
    return f"approved by {', '.join(receipt.approved_by)}"


def _show(screen: Screen, told: Told, keep: Path | None) -> None:
    screen.line(f"\nThe end of its trace ({told.trace_lines} lines of JSON):\n")
    for event in told.last_events:
        screen.line("  " + event_line(event, 110))
    screen.line("\nIts receipts, each sealed and chained to the one before:\n")
    screen.table(
        ("#", "tool", "outcome", "tier", "rule", "seal"),
        [
            (str(each.number), each.tool, each.status, str(each.tier), _rule(each), each.seal[:12])
            for each in told.receipts
        ],
    )
    sound = "every one is in place" if told.verdict.sound else "NOT SOUND"
    screen.line(f"\n{told.verdict.receipts} receipts verified: {sound}.")
    writes = sum(each.tool == "write_file" for each in told.receipts)
    screen.line(
        f"Killed once with kill -9 and resumed: {writes} files written, each of them once. "
        f"{told.seconds} s in all."
    )
    if keep is not None:
        screen.line(f"\nLook around: cd {keep} && {_program()} show {told.run}")


def _program() -> str:
    """How Podium is started here: by its name when a shell would find it, else by its path."""
    beside = Path(sys.executable).with_name("podium")
    return "podium" if shutil.which("podium") or not beside.exists() else str(beside)
