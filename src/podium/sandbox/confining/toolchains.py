"""Where programs that do not belong to the system lie: shown read-only to a confined tree, and no more than that.

A person's home holds toolchains beside keys. So what is shown there is what looks like an installation
of something, and of everything else only folders of programs. Nothing that the tree itself could have written is
read or followed on the way: else it would choose what it is shown.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import podium

SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc")))
"""What every confined tree sees."""
PROGRAM_FOLDERS = ("bin", "sbin", "shims", ".bin")
MANAGERS = (
    *(".pyenv", ".nvm", ".rbenv", ".volta", ".sdkman"),
    *(".asdf", ".rustup", ".deno", ".bun"),
)
"""Folders of a home that hold toolchains and nothing else."""
_FIRST_LINE_BYTES = 256
_MOST_HOPS = 16


def seen_places(
    programs: Sequence[str],
    search_path: str,
    *,
    home: str,
    closed: Sequence[str] = (),
    untrusted: Sequence[str] = (),
) -> tuple[str, ...]:
    """All that has to be shown for these programs to start and for those on the search path to work.

    `programs` and `search_path` are a person's own, never an agent's. `closed` are folders that no shown
    place may hold or lie in, `untrusted` those that the tree can write.
    """
    finder = _Finder(Path(home), closed, untrusted)
    found: dict[str, None] = {}
    for place in (*own_places(), *finder.of_search_path(search_path)):
        found[str(place)] = None
    for name in programs:
        for place in finder.of_program(name, search_path):
            found[str(place)] = None
    there = [place for place in found if Path(place).exists()]
    return _without_inner([place for place in there if finder.may_be_shown(Path(place))])


def own_places() -> tuple[Path, ...]:
    """Podium's own interpreter and programs, which hooks inside are made of."""
    return Path(sys.prefix), Path(sys.base_prefix), Path(podium.__file__).parent


class _Finder:
    def __init__(self, home: Path, closed: Sequence[str], untrusted: Sequence[str]) -> None:
        self._home = _real(home)
        self._closed = [_real(Path(path)) for path in closed if path]
        self._untrusted = [_real(Path(path)) for path in untrusted]

    def may_be_shown(self, place: Path) -> bool:
        """Whether it lies outside of the system, and neither holds nor lies in what is closed."""
        real = _real(place)
        if _of_system(real) or self._is_untrusted(real):
            return False
        if self._home.is_relative_to(real):
            return False
        return not any(
            each.is_relative_to(real) or real.is_relative_to(each) for each in self._closed
        )

    def of_search_path(self, search_path: str) -> Iterator[Path]:
        for entry in search_path.split(os.pathsep):
            folder = Path(entry)
            if (
                entry
                and folder.is_absolute()
                and folder.is_dir()
                and not self._is_untrusted(folder)
            ):
                yield from self._around(folder)

    def of_program(self, name: str, search_path: str) -> Iterator[Path]:
        """Files of the program's own, and its interpreter with the same."""
        waiting = [Path(name)] if "/" in name else _on_search_path(name, search_path)
        seen: set[Path] = set()
        while waiting and len(seen) < _MOST_HOPS:
            path = waiting.pop()
            if path in seen or not path.is_absolute() or self._is_untrusted(path):
                continue
            seen.add(path)
            yield from self._of_file(path)
            waiting += _interpreters(path, search_path)

    def _of_file(self, path: Path) -> Iterator[Path]:
        """What lies around the file, and around every file that its links lead to."""
        for _ in range(_MOST_HOPS):
            if self._is_untrusted(path):
                return
            around = list(self._around(path.parent))
            # Beside a program there may lie anything: then only the file itself is shown.
            yield from around or [path]
            try:
                target = path.readlink()
            except OSError:
                return
            path = Path(os.path.normpath(path.parent / target))

    def _around(self, folder: Path) -> Iterator[Path]:
        """The installation that this folder of programs belongs to; the folder; or nothing."""
        for place in self._candidates(folder):
            if self.may_be_shown(place):
                yield place
                yield from self._belonging(place)
                return

    def _candidates(self, folder: Path) -> Iterator[Path]:
        """From the largest on, of which the first that may be shown is."""
        real = _real(folder)
        managed = next((m for m in MANAGERS if real.is_relative_to(self._home / m)), None)
        if managed is not None:
            yield self._home / managed
        packages = _outermost(folder, "node_modules")
        if packages is not None:
            yield packages
        is_programs = folder.name in PROGRAM_FOLDERS
        if is_programs and (_is_venv(folder.parent) or self._is_installation(folder.parent)):
            yield folder.parent
        if is_programs or not real.is_relative_to(self._home):
            yield folder

    def _belonging(self, place: Path) -> Iterator[Path]:
        """What a toolchain keeps elsewhere."""
        if _is_venv(place):
            base = _base_of_venv(place)
            if base is not None and not self._is_untrusted(base):
                yield from self._around(base)
        elif _real(place) == self._home / ".cargo" / "bin":
            yield self._home / ".rustup"
        elif _real(place) == self._home / ".local" / "bin":
            yield self._home / ".local" / "share" / "uv"

    def _is_installation(self, prefix: Path) -> bool:
        real = _real(prefix)
        # Of `.cargo` and `.local` only the programs: they hold tokens and keyrings, too.
        if real in (self._home / ".cargo", self._home / ".local"):
            return False
        return any((prefix / name).is_dir() for name in ("lib", "lib64", "libexec", "include"))

    def _is_untrusted(self, path: Path) -> bool:
        real = _real(path)
        return any(
            real.is_relative_to(each) or path.is_relative_to(each) for each in self._untrusted
        )


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


def _interpreters(path: Path, search_path: str) -> list[Path]:
    """What the first line of a script names; of `env NAME`, what is found under that name."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return []
        with path.open("rb") as file:
            line = file.read(_FIRST_LINE_BYTES).split(b"\n", 1)[0]
    except OSError:
        return []
    if not line.startswith(b"#!"):
        return []
    words = line[2:].decode(errors="replace").split()
    if not words:
        return []
    if Path(words[0]).name != "env":
        return [Path(words[0])]
    names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return _on_search_path(names[0], search_path) if names else []


def _on_search_path(name: str, search_path: str) -> list[Path]:
    candidates = (Path(folder, name) for folder in search_path.split(os.pathsep) if folder)
    return [path for path in candidates if path.is_absolute() and os.access(path, os.X_OK)][:1]


def _outermost(folder: Path, name: str) -> Path | None:
    for place in reversed((folder, *folder.parents)):
        if place.name == name:
            return place
    return None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _of_system(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in SYSTEM)


def _without_inner(places: Sequence[str]) -> tuple[str, ...]:
    """The places without those that lie in another of them."""
    paths = [Path(text) for text in places]
    return tuple(str(path) for path in paths if not any(other in path.parents for other in paths))
