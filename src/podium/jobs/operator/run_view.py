"""View of the operator's runs and answers: five blocks or one object, and progress lines."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING, Any

from podium.cli.screen import is_terminal
from podium.core.ids import short_id
from podium.core.model import Json
from podium.core.work import Run
from podium.jobs.operator.answer_blocks import blocks
from podium.jobs.operator.models import OperatorAnswer

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.app.run_list import RunListing
    from podium.cli.context import CliContext
    from podium.cli.progress import Progress
    from podium.core.errors import PodiumError
    from podium.core.events import Event
    from podium.ports import Store
    from podium.telemetry.event_feed import ListenerThread


Started = Callable[[Run], Awaitable[None]]
_MAX_ARGUMENTS = 100
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def show(cli: CliContext, answer: OperatorAnswer) -> None:
    """The answer on stdout: as five blocks, or as one object."""
    cli.screen.answer(record_of(answer), lambda: show_text(cli, blocks(answer)))


def show_text(cli: CliContext, text: str) -> None:
    """Blocks as they are where they are piped; on a terminal with titles that stand out."""
    # What is hidden in them is written out already, and joined emoji are to stay joined.
    drawn = _drawn(text, shutil.get_terminal_size().columns) if is_terminal() else [text]
    cli.screen.pass_on(("\n".join(drawn) + "\n").encode(errors="replace"))


def _drawn(text: str, width: int) -> Iterator[str]:
    bold, plain = ("", "") if os.environ.get("NO_COLOR") else (_BOLD, _PLAIN)
    to_paste = False
    for line in text.split("\n"):
        if line.startswith("["):
            to_paste = line == "[NEXT ACTIONS]"
            yield f"{bold}{line}{plain}"
        elif to_paste or len(line) <= width:
            # Folded by the terminal itself, a command can be copied in one piece.
            yield line
        else:
            start = " " * (len(line) - len(line.lstrip()))
            # Text of somebody else stays behind its bar.
            hanging = f"{start}|   " if line.startswith(f"{start}| ") else f"{start}    "
            yield fill(
                line, max(width, 20), subsequent_indent=hanging,
                break_on_hyphens=False, break_long_words=False,
            )  # fmt: skip


def record_of(answer: OperatorAnswer) -> dict[str, Json]:
    """The answer as `--json` gives it: its fields, the plan's hash, and the five blocks as `text`."""
    record: dict[str, Json] = {**answer.model_dump(mode="json"), "text": blocks(answer)}
    if answer.plan is not None:
        record["plan"]["plan_hash"] = answer.plan.plan_hash
    return record


def answer_schema() -> dict[str, Any]:
    """The JSON Schema of `record_of`."""
    schema = OperatorAnswer.model_json_schema(mode="serialization")
    _add_field(schema, "text", "The five blocks of the answer as text.")
    _add_field(schema["$defs"]["RunPlan"], "plan_hash", "Hash that an approval is bound to.")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _add_field(schema: dict[str, Any], name: str, description: str) -> None:
    title = name.replace("_", " ").title()
    schema["properties"][name] = {"description": description, "title": title, "type": "string"}
    schema["required"] = [*schema.get("required", ()), name]


def line_of(event: Event) -> str:
    """Render an event for somebody who waits for the run; empty when it does not concern them."""
    from podium.core import events as e
    from podium.render.approval import arguments_line

    at = f"[{event.at.astimezone():%H:%M:%S}] OPERATOR:"
    match event.body:
        case e.ToolRequested() as body:
            return f"{at} {body.tool} {arguments_line(body.arguments, _MAX_ARGUMENTS)}"
        case e.ToolCompleted() as body:
            return f"{at} {body.tool} done in {body.seconds:.1f} s, receipt {body.receipt}"
        case e.ToolFailed() as body:
            return f"{at} {body.tool} failed: {body.error}"
        case e.ToolInDoubt() as body:
            return f"{at} {body.tool} may or may not have happened; a person must check"
        case _:
            return ""


@asynccontextmanager
async def followed(
    cli: CliContext, podium: Podium, *, show_progress: bool
) -> AsyncIterator[Started]:
    """While open, what happens in a run that was started is told on stderr."""
    listening: list[ListenerThread] = []
    with ExitStack() as stack:

        async def started(run: Run) -> None:
            _say_how_to_go_on(cli, run)
            if show_progress:
                # Late: a message that starts no run is answered without them.
                from podium.cli.progress import Progress
                from podium.ports import EventQuery
                from podium.telemetry.event_feed import ListenerThread

                store, query = await podium.store(), EventQuery(run_id=run.id)
                show = partial(_print, stack.enter_context(Progress(sys.stderr)))
                listening.append(ListenerThread(store, query, show, name="the live view"))

        try:
            yield started
        finally:
            # The answer was there before its last events were; they are told all the same.
            for listener in listening:
                await listener.close()
    for listener in listening:
        for problem in listener.problems:
            cli.screen.stderr_line(f"podium: {problem}")


def _print(progress: Progress, event: Event) -> None:
    if line := line_of(event):
        progress.line(line)


def _say_how_to_go_on(cli: CliContext, run: Run) -> None:
    short = short_id(run.id)
    if run.queue is not None:
        cli.options.parting_note = (
            f"run {run.id} continues in queue {run.queue!r}; follow it with `podium logs -f {short}`, "
            f"cancel it with `podium cancel {short}`"
        )
        return
    cli.options.parting_note = (
        f"run {run.id} stays at its checkpoint; continue with `podium resume {short}`, "
        f"cancel it with `podium cancel {short}`"
    )


class OperatorRunView:
    """A run of the operator that goes on: its calls on stderr, the five blocks at its end."""

    def __init__(self, cli: CliContext, run: Run) -> None:
        self._cli = cli
        self._run = run
        self._answer: OperatorAnswer | None = None

    async def begin(self, store: Store) -> int:
        return await store.read(lambda view: view.last_seq(self._run.id))

    def event(self, event: Event, progress: Progress) -> None:
        _print(progress, event)

    async def look_back(self, podium: Podium, run: Run) -> None:
        from podium.jobs.operator.composition import answer_of_run

        self._answer = await answer_of_run(podium, run)

    def end(self, status: RunListing, exit_code: int) -> None:
        if self._answer is None:
            return
        answer = self._answer.model_copy(update={"exit_code": exit_code})
        record = {"run": status.record(), "answer": record_of(answer)}
        self._cli.screen.answer(record, lambda: show_text(self._cli, blocks(answer)))

    def break_off(self, error: PodiumError) -> None:
        return
