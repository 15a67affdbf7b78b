"""Command `podium prompts`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import Field

from podium.app.run_report import show_run
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.screen import Screen
from podium.core.errors import BadInput
from podium.core.events import AgentAsked, Event, ModelAnswered
from podium.core.model import FrozenModel, Json
from podium.jobs.pipeline.events import StageBegan
from podium.ports import EventQuery
from podium.render.text import counted, safe_text

if TYPE_CHECKING:
    from podium.app.app import Podium


app = command_app()

_TYPES = ("stage_began", "agent_asked", "model_answered")
_MAX_EVENTS = 100_000


class Prompt(FrozenModel):
    """One prompt, as a stage has it or as a run has sent it."""

    stage: str
    role: str
    text: str
    characters: int
    parts: dict[str, int] = Field(default_factory=dict)
    """Characters by part of the prompt."""
    inputs: tuple[str, ...] = ()
    """Material that is put in when it is sent."""
    requests: int = 0
    """Number of model requests in this turn, for agents of Podium's own."""
    sent: dict[str, int] = Field(default_factory=dict)
    """Characters of all these requests together, by part."""


@app.command()
def prompts(
    context: typer.Context,
    run: Annotated[
        str,
        typer.Argument(
            metavar="[RUN]",
            help="Show the prompts that this run sent. Default: those that are configured.",
        ),
    ] = "",
    stage: Annotated[
        str, typer.Option("--stage", metavar="NAME", help="Print the text of this stage's prompts.")
    ] = "",
    mode: Annotated[
        str,
        typer.Option("--mode", metavar="NAME", help="Without RUN: show the prompts of this mode."),
    ] = "",
) -> None:
    """Show the pipeline's prompts and their sizes, as configured or as a run sent them.

    Without RUN: the instructions of each stage, including your own (`.podium/prompts/`, `prompt:`), and their inputs.
    With RUN: every prompt that was sent, round by round, with the size of its parts; for agents of kind `api` also the
    size of all requests of the turn, by part.

    \b
    Example:
      podium prompts
      podium prompts --stage develop
      podium prompts --mode quick
      podium prompts 9d1f5a6b
      podium prompts 9d1f5a6b --stage audit
    """
    cli = CliContext(context.obj, lenient=bool(run))
    if run:
        cli.must_have_state("run", run)
        selected = cli.run(lambda podium: _sent(podium, run))
    else:
        selected = _set_up(cli, mode)
    if stage:
        stages = list(dict.fromkeys(prompt.stage for prompt in selected))
        selected = [prompt for prompt in selected if prompt.stage.partition(" ")[0] == stage]
        if not selected:
            raise BadInput(f"there is no stage {stage!r}; stages: {', '.join(stages) or 'none'}")
    record: dict[str, Json] = {"prompts": [prompt.model_dump(mode="json") for prompt in selected]}
    cli.screen.answer(record, lambda: _render(cli.screen, selected, bool(run), bool(stage)))


def _set_up(cli: CliContext, mode: str) -> list[Prompt]:
    from podium.jobs.pipeline.spec import pipeline_prompts, pipeline_spec

    spec = pipeline_spec(cli.configuration)
    if mode and mode not in spec.modes:
        raise BadInput(f"there is no mode {mode!r}; modes: {', '.join(spec.modes)}")
    texts = pipeline_prompts(cli.configuration, spec)
    own = spec.mode(mode).prompts if mode else {}
    skipped = spec.mode(mode).skip if mode else ()
    return [
        Prompt(
            stage=name,
            role=stage.role,
            text=(text := texts[own.get(name) or stage.prompt or name]),
            characters=len(text),
            inputs=stage.gives,
        )
        for name, stage in spec.stages.items()
        if name not in skipped
    ]


async def _sent(podium: Podium, run: str) -> list[Prompt]:
    store = await podium.store()
    stored = (await show_run(store, run, last_events=0)).run
    query = EventQuery(run_id=stored.id, types=_TYPES, limit=_MAX_EVENTS)
    return prompts_of(await store.read(lambda view: view.events(query)))


def prompts_of(events: Iterable[Event]) -> list[Prompt]:
    """Every prompt that was sent, in order, with what its turn's requests came to."""
    by_step: dict[str, Prompt] = {}
    parts: Mapping[str, int] = {}
    for event in events:
        match event.body:
            case StageBegan(sizes=sizes):
                parts = sizes
            case AgentAsked(step=step, role=role, prompt=text):
                made_of = dict(parts) if sum(parts.values()) == len(text) else {}
                by_step[step] = Prompt(
                    stage=_stage_label(step),
                    role=role,
                    text=text,
                    characters=len(text),
                    parts=made_of,
                )
            case ModelAnswered(step=step, answer=answer) if step in by_step:
                asked = by_step[step]
                total = Counter(asked.sent) + Counter(answer.sizes)
                change = {"requests": asked.requests + 1, "sent": dict(total)}
                by_step[step] = asked.model_copy(update=change)
    return list(by_step.values())


def _stage_label(step: str) -> str:
    """`develop-2` is round 2 of develop; `develop-2#1` its second turn, after an approval."""
    turn, _, again = step.partition("#")
    stage, _, number = turn.rpartition("-")
    more = f", turn {int(again) + 1}" if again.isdigit() else ""
    return f"{stage} (round {number}{more})" if stage and number.isdigit() else step


def _render(screen: Screen, selected: list[Prompt], sent: bool, whole: bool) -> None:
    if whole:
        for prompt in selected:
            screen.line(
                f"--- {prompt.stage}, {prompt.role}: {counted(prompt.characters, 'character')}"
            )
            screen.line(safe_text(prompt.text))
        return
    if not selected:
        screen.line("no prompts were sent")
        return
    if not sent:
        screen.table(
            ("STAGE", "ROLE", "CHARACTERS", "INPUTS"),
            [(e.stage, e.role, str(e.characters), ", ".join(e.inputs)) for e in selected],
        )
        screen.line(
            "Print one with `podium prompts --stage NAME`; show those of a run with `podium prompts RUN`."
        )
        return
    rows = [
        (
            e.stage,
            e.role,
            str(e.characters),
            _listed(e.parts),
            str(e.requests or ""),
            _listed(e.sent),
        )
        for e in selected
    ]
    screen.table(("STAGE", "ROLE", "CHARACTERS", "PARTS", "REQUESTS", "SENT"), rows)
    total = sum(sum(prompt.sent.values()) for prompt in selected)
    asked = sum(prompt.requests for prompt in selected)
    if asked:
        screen.line(f"{counted(asked, 'request')}, {counted(total, 'character')} sent in total")


def _listed(sizes: Mapping[str, int]) -> str:
    largest = sorted(sizes.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {size}" for name, size in largest if size)
