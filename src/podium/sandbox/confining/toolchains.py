"""Folders of programs that do not belong to the system: visible read-only to a confined tree, and no more than that.

A person's home holds toolchains beside keys, and a checkout programs beside everything else. So of what looks like
an installation its known parts are shown, and of everything else only folders of programs, or only the programs.
Nothing that the tree itself could have written is read or followed on the way: else it would choose what it is
shown.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import podium
from podium.sandbox.confining.layouts import (
    BESIDE_LOCAL_PROGRAMS,
    PROGRAM_FOLDERS,
    PYTHON_PARTS,
    PathSet,
    Workplaces,
    has_shape,
    is_guarded,
    manager_at,
    named_parts,
    parts_of,
    parts_of_manager,
    real_path,
)
from podium.sandbox.confining.view import is_under

_FIRST_LINE_BYTES = 256


def interpreters(path: Path, search_path: str) -> list[Path]:
    """The programs that the first line of a script names; of `env NAME`, what is found under that name."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return []
        with path.open("rb") as file:
            line = file.read(_FIRST_LINE_BYTES).split(b"\n", 1)[0]
    except OSError:
        return []
    if not line.startswith(b"#!"):
        return []
    tokens = line[2:].decode(errors="replace").split()
    if not tokens:
        return []
    if Path(tokens[0]).name != "env":
        return [Path(tokens[0])]
    names = [token for token in tokens[1:] if not token.startswith("-") and "=" not in token]
    return on_search_path(names[0], search_path) if names else []


def on_search_path(name: str, search_path: str) -> list[Path]:
    """The first program of this name, if there is one."""
    candidates = (Path(folder, name) for folder in search_path.split(os.pathsep) if folder)
    return [path for path in candidates if path.is_absolute() and os.access(path, os.X_OK)][:1]


SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc")
"""Folders that every confined tree sees."""
_MAX_HOPS = 16
_MAX_PROGRAMS = 256
"""Of one folder that is not shown as a whole: each of them is a mount."""


def visible_paths(
    programs: Sequence[str],
    search_path: str,
    *,
    home: str,
    project: str = "",
    closed: Sequence[str] = (),
    untrusted: Sequence[str] = (),
) -> tuple[str, ...]:
    """All that has to be shown for these programs to start and for those on the search path to work.

    `programs` and `search_path` are a person's own, never an agent's. `project` is the checkout, of which only
    programs and what was installed into it are shown. `closed` are folders that no shown place may hold or lie
    in, `untrusted` those that the tree can write.
    """
    finder = _ToolchainFinder(Path(home), project, closed, untrusted)
    visible = {folder: None for folder in finder.of_podium() if finder.is_allowed(folder)}
    others = [*finder.of_search_path(search_path)]
    for name in programs:
        others += finder.of_program(name, search_path)
    for folder in dict.fromkeys(others):
        if finder.is_allowed(folder) and not is_guarded(real_path(folder)):
            visible[folder] = None
    return _without_inner([folder for folder in visible if folder.exists()])


def own_paths() -> tuple[Path, ...]:
    """Podium's own interpreter and programs, which hooks inside are made of."""
    return Path(sys.prefix), Path(sys.base_prefix), Path(podium.__file__).parent


class _ToolchainFinder:
    def __init__(
        self, home: Path, project: str, closed: Sequence[str], untrusted: Sequence[str]
    ) -> None:
        # Asked of the same places many times.
        self._real = cache(real_path)
        self._home = self._real(home)
        self._homes = PathSet([self._home])
        self._closed = PathSet(closed)
        self._untrusted = PathSet(untrusted)
        self._work = Workplaces(project or os.devnull, self._home)
        # They hold tokens and keyrings beside programs.
        self._mixed = PathSet([self._home / name for name in (".config", ".docker")])
        self._cargo, self._local = self._home / ".cargo", self._home / ".local"
        self._shared = PathSet([self._cargo, self._local])
        self._managed = cache(lambda folder, layout: tuple(parts_of_manager(folder, layout)))

    def is_allowed(self, path: Path) -> bool:
        """Tell whether it lies outside of the system, and neither holds nor lies in what is closed."""
        real = self._real(path)
        if _of_system(real) or self._is_untrusted(path) or self._homes.lie_in(real):
            return False
        return not (self._closed.hold(real) or self._closed.lie_in(real))

    def of_podium(self) -> Iterator[Path]:
        *prefixes, package = own_paths()
        for prefix in dict.fromkeys(prefixes):
            if self._is_self_contained(self._real(prefix)):
                yield from parts_of(prefix)
            else:
                yield from named_parts(prefix, PYTHON_PARTS)
        yield package

    def of_search_path(self, search_path: str) -> Iterator[Path]:
        for entry in search_path.split(os.pathsep):
            folder = Path(entry)
            if entry and folder.is_absolute() and folder.is_dir():
                yield from self._around(folder)

    def of_program(self, name: str, search_path: str) -> Iterator[Path]:
        """Files of the program's own, and its interpreter with the same."""
        waiting = [Path(name)] if "/" in name else on_search_path(name, search_path)
        visited: set[Path] = set()
        while waiting and len(visited) < _MAX_HOPS:
            path = waiting.pop()
            if (
                path in visited
                or not path.is_absolute()
                or self._is_untrusted(path)
                or path.is_dir()
            ):
                continue
            visited.add(path)
            yield from self._of_file(path)
            waiting += interpreters(path, search_path)

    def _of_file(self, path: Path) -> Iterator[Path]:
        """Yield the folders around the file, and around every file that its links lead to."""
        for hop in range(_MAX_HOPS):
            if self._is_untrusted(path):
                return
            around = list(self._around(path.parent))
            yield from around
            # Beside a program there may lie anything: then only the file itself is shown. What a person named
            # may be a script for an interpreter; where a link leads there must be a program.
            is_visible = any(folder in (path, *path.parents) for folder in around)
            if not is_visible and path.is_file() and (not hop or os.access(path, os.X_OK)):
                yield path
            try:
                target = path.readlink()
            except OSError:
                return
            path = Path(os.path.normpath(path.parent / target))

    def _around(self, folder: Path) -> Iterator[Path]:
        """Yield what belongs to the programs of this folder; the folder; its programs; or nothing."""
        folder = self._real(folder) if ".." in folder.parts else folder
        real = self._real(folder)
        if _of_system(real) or self._homes.lie_in(real) or self._is_untrusted(folder):
            return
        yield from self._of_manager(folder)
        packages = _outermost(folder, "node_modules")
        if packages is not None and self._real(packages).name == packages.name:
            yield packages
        elif folder.name in PROGRAM_FOLDERS and real.name in PROGRAM_FOLDERS:
            yield from self._of_programs(folder)
        elif not self._homes.hold(real):
            yield from self._loose(folder)

    def _of_manager(self, folder: Path) -> Iterator[Path]:
        for parent in folder.parents:
            layout = manager_at(parent)
            if layout is not None and not self._work.hold(self._real(parent).parent):
                yield from self._managed(parent, layout)

    def _of_programs(self, folder: Path) -> Iterator[Path]:
        prefix = folder.parent
        if _is_venv(prefix):
            alone = self._is_self_contained(self._real(prefix))
            yield from parts_of(prefix) if alone else named_parts(prefix, PYTHON_PARTS)
            base = _base_of_venv(prefix)
            if base is not None and base != folder:
                yield from self._around(base)
        elif self._is_installation(prefix):
            yield from (part for part in parts_of(prefix) if not self._is_worked_in(part))
        else:
            yield from self._loose(folder)
            yield from self._belonging(self._real(folder))

    def _belonging(self, programs: Path) -> Iterator[Path]:
        """Yield the folders that a toolchain keeps elsewhere."""
        if programs == self._cargo / "bin":
            toolchains = self._home / ".rustup"
            layout = manager_at(toolchains)
            yield from parts_of_manager(toolchains, layout) if layout else ()
        elif programs == self._local / "bin":
            for name, layout in BESIDE_LOCAL_PROGRAMS.items():
                yield from parts_of_manager(self._local / name, layout)

    def _is_installation(self, prefix: Path) -> bool:
        real = self._real(prefix)
        if not self._is_self_contained(real) or self._work.hold(real) or self._mixed.hold(real):
            return False
        return has_shape(prefix)

    def _is_worked_in(self, folder: Path) -> bool:
        real = self._real(folder)
        return self._work.hold(real) or self._work.are_marked(real) or self._work.lie_in(real)

    def _is_self_contained(self, prefix: Path) -> bool:
        """Tell whether nothing else lies there, as it does in a home or at the top of a checkout."""
        if self._homes.lie_in(prefix) or self._shared.are_at(prefix):
            return False
        return not self._work.are_marked(prefix)

    def _loose(self, folder: Path) -> Iterator[Path]:
        """A folder of programs that belongs to nothing, or its programs alone if people work there."""
        real, lexical = self._real(folder), self._real(folder.parent) / folder.name
        if self._work.hold(lexical) and real != lexical:
            # A link in a checkout is anybody's who ever had a change of his taken over.
            return
        yield from _programs_in(folder) if self._is_worked_in(folder) else [folder]

    def _is_untrusted(self, path: Path) -> bool:
        return any(map(self._untrusted.hold, {path, self._real(path)}))


def _programs_in(folder: Path) -> list[Path]:
    entries = (path for path in sorted(folder.iterdir()) if not path.name.startswith("."))
    return [path for path in entries if path.is_file() and os.access(path, os.X_OK)][:_MAX_PROGRAMS]


def _is_venv(prefix: Path) -> bool:
    return (prefix / "pyvenv.cfg").is_file()


def _base_of_venv(prefix: Path) -> Path | None:
    """The folder of the interpreter that a virtual environment was made with."""
    try:
        lines = (prefix / "pyvenv.cfg").read_text(errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition("=")
        folder = Path(value.strip())
        if key.strip() == "home" and folder.is_absolute() and folder.name in PROGRAM_FOLDERS:
            return folder if any(folder.glob("python*")) else None
    return None


def _outermost(folder: Path, name: str) -> Path | None:
    for parent in reversed((folder, *folder.parents)):
        if parent.name == name:
            return parent
    return None


def _of_system(path: Path) -> bool:
    return any(is_under(str(path), folder) for folder in SYSTEM)


def _without_inner(paths: Sequence[Path]) -> tuple[str, ...]:
    """The places without those that lie in another of them."""
    there = set(paths)
    return tuple(str(path) for path in paths if not there.intersection(path.parents))
