"""`podium sense --once --if-changed` where nothing has changed: answered before the rest is loaded."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from podium.domain.errors import PodiumError
from podium.wiring.sense_variables import is_scheduled


@dataclass
class IdleTickArguments:
    """A command line that asks for one tick, which plans only if something changed."""

    json: bool = False
    project: Path | None = None


def answer_idle_tick(arguments: list[str]) -> int | None:
    """Make, record and tell an idle tick, and give its exit code. None: it takes the ordinary command."""
    parsed = parse_arguments(arguments)
    if parsed is None or sys.stdout.isatty() or sys.stderr.isatty():
        return None
    from podium.wiring.clock import SystemClock
    from podium.wiring.folders import find_folders
    from podium.wiring.idle_tick import make_idle_tick

    try:
        folders = find_folders(os.environ, project=parsed.project)
    except (PodiumError, OSError, RuntimeError, ValueError):
        return None
    tick = make_idle_tick(folders, os.environ, SystemClock())
    if tick is None:
        return None
    from podium.cli.screen import AnswerLost, Screen
    from podium.cli.tick_words import NOTHING_CHANGED, show_part, show_sensed, show_totals

    screen, record = Screen(json=parsed.json), tick.record
    for fault in tick.faults:
        screen.aside(f"podium: {fault}")

    def show() -> None:
        show_sensed(screen, record["tick"], record["mode"], record["seconds"], record["counts"])
        show_part(screen, "planner", [f"{record['status']}: {NOTHING_CHANGED}"])
        show_totals(screen, record["tick"], record["idle_ticks"], record["tokens"])
        screen.line()
        screen.line(tick.summary)

    try:
        screen.answer({**record, "summary": tick.summary}, show)
    except AnswerLost as lost:
        screen.aside(f"podium: {lost}")
        return lost.exit_code
    return 0


def parse_arguments(arguments: list[str]) -> IdleTickArguments | None:
    """None: the command line asks for something else, or says it in a way that is left to typer."""
    parsed, flags = IdleTickArguments(), list[str]()
    words = iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        if option == "--project" or (option == "--root" and "sense" in flags):
            folder = value if equals else next(words, "")
            if parsed.project is not None or not folder:
                return None
            parsed.project = Path(folder)
            if option == "--root":
                parsed.project = parsed.project.expanduser()
        elif word in ("sense", "--once", "--if-changed", "--json") and word not in flags:
            if word in ("--once", "--if-changed") and "sense" not in flags:
                return None
            flags.append(word)
        else:
            return None
    if_changed = "--if-changed" in flags or is_scheduled(os.environ)
    if not (if_changed and "--once" in flags):
        return None
    parsed.json = "--json" in flags
    return parsed
