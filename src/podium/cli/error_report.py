"""Errors as messages and exit codes, in one place."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import typer

from podium.cli.app import Options, build
from podium.cli.screen import AnswerLost, Screen, error_record, redirect_to_null
from podium.core.errors import NO_SPACE, Interrupted, PodiumError, ToolMissing

USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]
"""Typer's usage error, wherever it defines the class."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit code. Nothing but the answer goes to stdout."""
    # A lone surrogate in a file name must not bring down the line that reports it.
    for stream in (sys.stdout, sys.stderr):
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    options = Options()
    code = _invoke(list(arguments), options)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        redirect_to_null(sys.stdout)
    except OSError as error:
        redirect_to_null(sys.stdout)
        return _reported(error, f"the answer could not be written: {error.strerror}", 1, options)
    return code


def _invoke(arguments: list[str], options: Options) -> int:
    try:
        command = _called(arguments, options)
    except typer.Exit as exit_:
        return int(exit_.exit_code)
    except (KeyboardInterrupt, typer.Abort, Interrupted) as interrupted:
        return _interrupted(interrupted, options)
    except USAGE_ERROR as error:
        return _misread(error, options, arguments)
    except PodiumError as error:
        return _reported(error, str(error), error.exit_code, options)
    except BrokenPipeError:
        # Help and completions, whose reader went away; answers are the screen's own affair.
        redirect_to_null(sys.stdout)
        return 0
    except OSError as error:
        return _refused_by_the_system(error, options)
    except UnicodeEncodeError as error:
        if any(map(_is_undecodable, arguments)):
            message = "an argument is not valid UTF-8; copy ids from the lists"
            return _reported(error, message, 2, options)
        return _unexpected(error, options)
    except Exception as error:
        return _unexpected(error, options)
    return command if isinstance(command, int) else 0


def _unexpected(error: Exception, options: Options) -> int:
    hint = "" if options.debug else "; run it again with --debug for a traceback"
    return _reported(error, f"{type(error).__name__}: {error}{hint}", 1, options)


def _refused_by_the_system(error: OSError, options: Options) -> int:
    """Report an operating-system error, with the path and advice."""
    try:
        sys.stdout.flush()
    except OSError:
        redirect_to_null(sys.stdout)
    if isinstance(error, FileNotFoundError) and _is_nowhere():
        message = "the current folder no longer exists; change to another one (cd)"
        return _reported(error, message, 2, options)
    if error.errno in NO_SPACE:
        if error.filename:
            full = f"the disk is full; free space in {str(Path(str(error.filename)).parent)!r}"
        else:  # A file would be named: it may as well be what the output goes to.
            where = str(options.project or Path.cwd())
            full = f"the disk is full ({error.strerror}); free space in {where!r}, or where the output goes,"
        return _reported(error, f"{full} and run the command again", 1, options)
    about = f"{str(error.filename)!r}: " if error.filename else ""
    advice = {
        errno.EACCES: "; give yourself read and write access (ls -ld, chmod, chown)",
        errno.EPERM: "; give yourself read and write access (ls -ld, chmod, chown)",
        errno.EROFS: "; the file system is read-only",
    }.get(error.errno or 0)
    if advice:
        advice += _other_folder(Path(str(error.filename or "")))
    elif not options.debug:
        advice = "; run it again with --debug for a traceback"
    return _reported(error, f"{about}{error.strerror or error}{advice or ''}", 1, options)


def _other_folder(path: Path) -> str:
    """Advice on choosing another folder, if this path is in the project's or the user's state."""
    if ".podium" in path.parts:
        return ", or use a folder you own (cd, or --project DIR)"
    home = os.environ.get("HOME")
    if home and path.is_relative_to(home):
        return ", or set HOME or PODIUM_HOME to a folder you own"
    return ""


def _is_nowhere() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _is_undecodable(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _called(arguments: list[str], options: Options) -> object:
    group = build()
    if "_PODIUM_COMPLETE" in os.environ:
        # The shell asks for completions, which only typer's own entry answers.
        return group.main(args=arguments, prog_name="podium")
    # That entry has ways of its own with Ctrl-C and broken pipes, so it is not used otherwise.
    with group.make_context("podium", arguments, obj=options) as context:
        return group.invoke(context)


def _reported(error: BaseException, message: str, code: int, options: Options) -> int:
    screen = Screen(json=options.json)
    if options.debug:
        traceback.print_exception(error)
        if isinstance(error, ToolMissing):
            screen.stderr_line(f"PATH={os.environ.get('PATH', '')}")
    screen.stderr_line(f"podium: {message}")
    if options.json:
        with suppress(AnswerLost):
            screen.record({"error": error_record(error, message, code)})
    return code


def _interrupted(error: BaseException, options: Options) -> int:
    message = options.parting_note
    return _reported(error, f"interrupted; {message}" if message else "interrupted", 130, options)


def _misread(error: Exception, options: Options, arguments: Sequence[str]) -> int:
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    options.json = options.json or "--json" in before
    message = str(getattr(error, "format_message", error.__str__)())
    if message.startswith("Usage:"):
        # A bare group of commands: its help is the answer to what was wrong.
        Screen().stderr_line(message)
        return 2
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "podium"
    stop = "" if message.endswith(("?", ".")) else "."
    return _reported(error, f"{message}{stop} `{path} --help` shows how.", 2, options)
