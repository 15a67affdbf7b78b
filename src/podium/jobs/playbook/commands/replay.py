"""Command `podium replay`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.app.id_lookup import find_id
from podium.cli.app import command_app
from podium.cli.commands.trace import STDIN, bring_up_to_date, names_a_file, piped_trace
from podium.cli.context import CliContext
from podium.core.errors import BadInput, UnknownId
from podium.core.ids import short_id
from podium.core.model import Json
from podium.render.text import counted, escaped_line
from podium.store.trace import TraceWriter
from podium.store.trace_reader import open_trace

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.jobs.playbook.replay import EventDifference, ReplaySource, ReplayVerdict
    from podium.ports import Store


MAX_VALUE_CHARACTERS = 300

app = command_app()


@app.command()
def replay(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FILE", help="Id of a run, or a short form; or a trace file, `-` for stdin."
        ),
    ],
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder that the run worked in, if its trace was moved. It does not have to exist.",
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a new trace that names no folder of this machine and replays anywhere.",
        ),
    ] = None,
) -> None:
    """Replay a recorded playbook run without its model and without side effects.

    Answers of the model, results of tools, answers of people and times come from the trace; prompt,
    tools, policy and flow are the current ones, and so are playbook and profile if their files still
    exist. Every event is compared. Exits with 0 when all are the same, with 1 when one differs, which is
    printed, and with 2 when the trace cannot be replayed.

    \b
    Example:
      podium replay 9d1f5a6b
      podium replay .podium/runs/RUN/execution_trace.jsonl
      podium replay trace.jsonl --json
      podium replay 9d1f5a6b --export trace.jsonl
    """
    cli = CliContext(context.obj)
    named = None if root is None else str(root.resolve())
    if export is not None and (export.exists() or not export.parent.is_dir()):
        raise BadInput(f"{str(export)!r} already exists, or its folder does not; name another file")
    replayed, trace = cli.run(lambda podium: _replayed(podium, source, named, export is not None))
    if export is not None and replayed.is_same:
        export.write_bytes(trace)
    cli.screen.answer(_as_json(replayed), lambda: _print(cli, replayed))
    if not replayed.is_same:
        raise typer.Exit(1)


async def _replayed(
    podium: Podium, source: str, root: str | None, export: bool
) -> tuple[ReplayVerdict, bytes]:
    """Replay the source. Returns the verdict, and the portable trace if `export` is set and all is the same."""
    from podium.jobs.playbook.replay import ReplayVerdict, exported, journal_difference
    from podium.jobs.playbook.replay import replay as replay_recording

    replay_source = await _resolve_source(podium, source)
    roots = replay_source.roots if root is None else (root,)
    changed = (
        await journal_difference(podium, replay_source.recording) if replay_source.is_own else None
    )
    if changed is not None:
        return ReplayVerdict(
            replay_source.recording, replay_source.recording.before(changed.seq), changed
        ), b""
    replayed = await replay_recording(
        podium,
        replay_source.recording,
        job=replay_source.job,
        roots=roots,
        settings=replay_source.settings,
    )
    with_trace = export and replayed.is_same
    return replayed, await exported(podium, replay_source, replayed.root) if with_trace else b""


async def _resolve_source(podium: Podium, source: str) -> ReplaySource:
    from podium.jobs.playbook.replay import read_recording, source_of_file, source_of_run

    if names_a_file(source):
        file = piped_trace() if source == STDIN else open_trace(Path(source))
        with file:
            recording = read_recording(file, "stdin" if source == STDIN else source)
        return source_of_file(podium, recording, None if source == STDIN else Path(source))
    if not podium.has_record:
        raise UnknownId("run", source)
    store: Store = await podium.store()
    run_id = await store.read(lambda view: find_id(view, "run", source))
    run = await store.read(lambda view: view.run(run_id))
    if run is None:
        raise UnknownId("run", source)
    folder = podium.folders.state / "runs"
    if problem := await bring_up_to_date(store, folder, run_id):
        raise BadInput(f"the trace of run {run_id} could not be brought up to date: {problem}")
    with open_trace(TraceWriter(folder).path(run_id)) as file:
        recording = read_recording(file, f"the trace of run {short_id(run_id)}")
    return await source_of_run(podium, recording, run)


def _as_json(replayed: ReplayVerdict) -> dict[str, Json]:
    difference = replayed.difference
    return {
        "run": replayed.recording.run_id,
        "same": replayed.is_same,
        "verbatim": replayed.is_verbatim,
        "recorded_events": len(replayed.recording.events),
        "same_events": len(replayed.lines),
        "difference": difference.record() if difference else None,
    }


def _print(cli: CliContext, replayed: ReplayVerdict) -> None:
    screen, count = cli.screen, len(replayed.recording.events)
    difference = replayed.difference
    if difference is None:
        how = ", byte for byte" if replayed.is_verbatim else ""
        screen.line(f"{counted(count, 'event')} replayed, all the same{how}")
        return
    screen.line(f"event {difference.seq} of {count} differs: {difference.type}")
    for line in _lines(difference):
        screen.line(line)
    if any(field.field == "digest" for field in difference.fields):
        screen.stderr_line(
            "a digest covers the tool, its arguments and its working folder; if that folder was moved, pass its "
            "old path with --root DIR"
        )


def _lines(difference: EventDifference) -> list[str]:
    lines = [f"  {difference.why}"] if difference.why else []
    for field in difference.fields:
        lines += [
            f"  {field.field}",
            f"    recorded: {_value_text(field.recorded)}",
            f"    now:      {_value_text(field.now)}",
        ]
    return lines


def _value_text(value: Json) -> str:
    if value is None:
        return "(nothing)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return escaped_line(text, MAX_VALUE_CHARACTERS)
