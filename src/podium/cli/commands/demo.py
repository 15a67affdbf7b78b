"""`podium demo`."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.command import command_app
from podium.cli.demo_end import Told, look_at, missing, show
from podium.cli.demo_host import DemoFailed, done, podium_command
from podium.cli.demo_sample import Sample, demo_environ
from podium.cli.demo_story import Story
from podium.cli.door import run_to_end
from podium.cli.screen import Screen
from podium.domain.errors import BadInput, ToolMissing
from podium.wiring import load_configuration, open_podium

app = command_app()


@app.command()
def demo(
    context: typer.Context,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="Make the sample project here and keep it."),
    ] = None,
) -> None:
    """See a bug become a reviewed branch, offline and without keys, whatever gets in the way.

    Scripted agents play every role of `podium run` in a sample project that is made for them: work is
    rejected and fails its audit, a call is denied, a person is asked, the process is killed and
    resumed, and main moves meanwhile. Git, checks, receipts and the kill are real.

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
        if lacks := missing(told):
            raise DemoFailed(f"it did not show {', '.join(lacks)}")
        screen.answer(told.record(), lambda: show(screen, told, kept=kept))
    except DemoFailed as error:
        kept = True
        raise DemoFailed(f"{error}; the sample project is kept in {folder}") from error
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
    if keep is not None and not screen.json:
        there = shlex.quote(str(keep))
        screen.line(f"\nLook around: cd {there} && {_program()} show {told.run}")


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
    # What is thrown away lies in one folder, worktrees and home included. What is kept must still be
    # proved later, so its key lies where the person's own do.
    project = folder if kept else folder / "shop"
    environ = demo_environ(os.environ, None if kept else folder / "home")
    tell = screen.aside if screen.json else screen.line
    sample = Sample(project, environ)
    await asyncio.to_thread(sample.make)
    tell(f"A sample project in {project}; scripted agents play every role.")
    await asyncio.to_thread(_trust_where_nothing_confines, project, environ)
    story = Story(sample, environ, tell)
    async with open_podium(load_configuration(environ, project=project), environ) as podium:
        await story.play(await podium.journal())
        return await look_at(podium, story, sample, time.monotonic() - began)


def _trust_where_nothing_confines(project: Path, environ: Mapping[str, str]) -> None:
    """The sample's checks are Podium's own words; elsewhere they run confined and need no trust."""
    if load_configuration(environ, project=project).sandbox.kind == "none":
        done(podium_command(project, "trust", "--yes"), project, environ)


def _program() -> str:
    """How Podium is started here: by its name when a shell would find it, else by its path."""
    beside = Path(sys.executable).with_name("podium")
    return "podium" if shutil.which("podium") or not beside.exists() else str(beside)
