"""Runs code as a new interpreter would, from a process that has loaded most of what it imports."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import runpy
import sys
import warnings
from collections.abc import Awaitable, Callable
from multiprocessing import get_context
from pathlib import Path

_LOADED = (
    *("asyncio", "httpx", "pydantic", "sqlite3", "tree_sitter_bash", "typer", "yaml"),
    *("podium.agents", "podium.engine", "podium.policy", "podium.store", "podium.library"),
    *(
        "podium.sandbox",
        "podium.testing",
        "podium.tools",
        "podium.app.run_list",
        "podium.app.app",
    ),
)
_PATIENCE_SECONDS = 120.0

_context = get_context("forkserver")
_context.set_forkserver_preload([__name__, *_LOADED])


def run_text(text: str, folder: Path) -> str:
    """Return what a page's code, which may await, prints when run in the folder. Raises `AssertionError` when it fails."""
    # Else a module would be there that the page did not import.
    assert not re.search(r"^\s*import podium\.", text, re.MULTILINE), "write `from podium… import`"
    return _run(_text, text, folder)


def run_file(file: Path, folder: Path) -> str:
    """The same for a file, as its own program."""
    return _run(_file, str(file), folder)


def _run(work: Callable[[str], None], given: str, folder: Path) -> str:
    output, trouble = folder / ".said", folder / ".trouble"
    process = _context.Process(target=_alone, args=(work, given, folder, output, trouble))
    process.start()
    process.join(_PATIENCE_SECONDS)
    if process.exitcode is None:
        process.kill()
        process.join()
    assert process.exitcode == 0, trouble.read_text() or f"ended with {process.exitcode}"
    return output.read_text()


def _alone(
    work: Callable[[str], None], given: str, folder: Path, output: Path, trouble: Path
) -> None:
    """In the new process: outputs to files, and every warning an error. What is to be done at exit is not."""
    for descriptor, file in ((1, output), (2, trouble)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), descriptor)
    os.chdir(folder)
    sys.path[0] = ""
    warnings.resetwarnings()
    warnings.simplefilter("error")
    work(given)


def _text(text: str) -> None:
    # Not with the imports from `__future__` of this file.
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(text, "page", "exec", flags=flags, dont_inherit=True)
    done = eval(code, {"__name__": "__main__"})
    if done is not None:
        asyncio.run(_finish(done))


async def _finish(done: Awaitable[None]) -> None:
    await done


def _file(file: str) -> None:
    sys.argv = [file]
    sys.path[0] = str(Path(file).parent)
    runpy.run_path(file, run_name="__main__")
