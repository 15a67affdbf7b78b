"""The entry of `podium`: instant for `--version`, late with everything else."""

from __future__ import annotations

import gc
import os
import sys

from podium import __version__

GC_THRESHOLD = 200_000
"""Objects between two garbage collections. With Python's 700, imports alone cause hundreds."""


FAST_ANSWERS = ((("sense", "--once"), "podium.jobs.sense.idle_tick:answer_idle_tick"),)
"""Arguments of a command line, and a function that may answer it without loading settings: `(arguments) -> exit code, or None`.

Not part of the job registry: loading that takes longer than such an answer.
"""


def main() -> None:
    """Run the command line and end the process with its exit code."""
    # Looking for plugins of pydantic reads the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    end_process(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    _open_what_is_closed()
    try:
        if arguments in (["--version"], ["-V"]) and _printed_version():
            return 0
        gc.set_threshold(GC_THRESHOLD)
        for flags, path in FAST_ANSWERS:
            if all(flag in arguments for flag in flags):
                from importlib import import_module  # late: `--version` does without

                module, name = path.split(":")
                answer = getattr(import_module(module), name)
                if (code := answer(arguments)) is not None:
                    return int(code)
        # Typer, pydantic and the rest cost ten times what a bare interpreter start does.
        from podium.cli.error_report import run

        return run(arguments)
    except KeyboardInterrupt:
        # Before or behind any work: there is nothing to say.
        return 130


def end_process(code: int) -> None:
    """Call the exit handlers, flush and end the process without freeing every object first.

    Freeing them takes a fifth of a short command. With threads still alive Python ends as usual.
    """
    threads = sys.modules.get("threading")
    if threads is not None and threads.active_count() > 1:
        sys.exit(code)
    try:
        if handlers := sys.modules.get("atexit"):
            handlers._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError):
        sys.exit(code)  # Python knows how to report a stream that cannot be flushed
    os._exit(code)


def _printed_version() -> bool:
    """Print the version; False when it could not be written, and the caller reports it."""
    try:
        os.write(1, f"podium {__version__}\n".encode())
    except OSError:
        return False
    return True


def _open_what_is_closed() -> None:
    """Open closed standard streams on the null device: else the next file to be opened, the database, takes their place."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (nowhere := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(nowhere)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for good
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for good
