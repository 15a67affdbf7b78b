"""`podium playbook restore`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.door import Door
from podium.cli.screen import Screen
from podium.domain.errors import NotPossibleNow
from podium.telling.untrusted import shown_line
from podium.telling.wording import counted
from podium.wiring import Podium

if TYPE_CHECKING:
    from podium.domain.playbook_runs import PutBack

MOST_SHOWN = 50


def restore(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or a short form.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    over: Annotated[
        bool, typer.Option("--over", help="Also what somebody changed after the run.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Take the last restore of this run back instead.")
    ] = False,
) -> None:
    """Put the folder of a playbook's run back to what it was before: byte for byte, and nothing is lost.

    Files that were changed, deleted or added since are shown first. What is there now is kept, so that
    --undo brings it back. What git knows (.git) is left alone.

    \b
    Example:
      podium playbook restore 9d1f5a6b
      podium playbook restore 9d1f5a6b --undo --yes
    """
    door = Door(context.obj)
    door.must_have_state("run", run)
    shown = _looked_at(door, run, undo)
    if not shown.paths:
        done = shown
    else:
        _show(door, shown, over)
        if not yes:
            _ask(door, f"put back {counted(len(shown.paths), 'path')} in {shown.root!r}?")
        done = _put_back(door, run, shown, undo, over)
    door.screen.answer(_record(done), lambda: _tell(door.screen, done, run))


def _looked_at(door: Door, run: str, undo: bool) -> PutBack:
    async def look(podium: Podium) -> PutBack:
        from podium.wiring.playbook_places import look_at_restoring

        return await look_at_restoring(podium, run, undo=undo)

    return door.run(look)


def _put_back(door: Door, run: str, shown: PutBack, undo: bool, over: bool) -> PutBack:
    async def work(podium: Podium) -> PutBack:
        from podium.wiring.playbook_places import restore_playbook

        return await restore_playbook(podium, run, shown, undo=undo, over=over)

    return door.run(work)


def _show(door: Door, shown: PutBack, over: bool) -> None:
    """On the side: programs get it with the answer."""
    later = set(shown.conflicts)
    lines = [(path, "put back") for path in shown.written]
    lines += [(path, "remove") for path in shown.removed]
    for path, what in sorted(lines)[:MOST_SHOWN]:
        mark = "  (changed after the run)" if path in later else ""
        door.screen.aside(f"{what:>8}  {shown_line(path)}{mark}")
    if len(lines) > MOST_SHOWN:
        door.screen.aside(f"          and {len(lines) - MOST_SHOWN} more")
    for words in shown.left_out:
        door.screen.aside(f"as it is  {shown_line(words)}")
    if later and not over:
        raise NotPossibleNow(
            f"{counted(len(later), 'path')} of these changed after the run, and nothing was put back; save what you "
            "need of it, then say it with --over"
        )


def _ask(door: Door, question: str) -> None:
    if door.screen.json or not typer.get_text_stream("stdin").isatty():
        raise NotPossibleNow(f"{question} nobody is here to answer; say it with --yes")
    typer.confirm(question, abort=True, err=True)


def _record(done: PutBack) -> dict[str, object]:
    return done.model_dump(mode="json", exclude={"seen"})


def _tell(screen: Screen, done: PutBack, run: str) -> None:
    if not done.paths:
        screen.line(f"nothing to put back: {shown_line(done.root)} is as it was")
        return
    screen.line(f"put back {counted(len(done.paths), 'path')} in {shown_line(done.root)}")
    screen.line(f"`podium playbook restore {shown_line(run)} --undo` takes that back")
