"""Where programs that do not belong to the system lie: shown read-only to a confined tree, and no more than that.

A person's home holds toolchains beside keys. So a folder of programs is shown with its libraries only
where its shape says that it is an installation of something, and alone everywhere else.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import podium

SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc")))
"""What every confined tree sees."""
_FIRST_LINE_BYTES = 256
_MOST_HOPS = 16


def seen_places(name: str, search_path: str, home: str) -> tuple[str, ...]:
    """All that has to be shown for a program to start and for those on the search path to work."""
    program = [Path(name)] if "/" in name else _on_search_path(name, search_path)
    found: dict[str, None] = dict.fromkeys(own_places())
    for path in program:
        found |= dict.fromkeys(program_places(str(path), search_path, home))
    return _without_inner(found | dict.fromkeys(search_path_places(search_path, home)))


def own_places() -> tuple[str, ...]:
    """Podium's own interpreter and programs, which hooks inside are made of."""
    places = [Path(sys.prefix), Path(sys.base_prefix), Path(podium.__file__).parent]
    return tuple(str(place) for place in places if not _of_system(place))


def program_places(program: str, search_path: str, home: str) -> tuple[str, ...]:
    """What has to be shown for this program to start, beside the system: files of its own, its interpreter."""
    found: dict[str, None] = {}
    waiting, seen = [Path(program)], set[Path]()
    while waiting and len(seen) < _MOST_HOPS:
        path = waiting.pop()
        if path in seen or not path.is_absolute():
            continue
        seen.add(path)
        for place in _places_of_file(path, Path(home)):
            found[str(place)] = None
        waiting += _interpreters(path, search_path)
    return _without_inner(found)


def search_path_places(search_path: str, home: str) -> tuple[str, ...]:
    """What has to be shown for the programs on the search path to work."""
    found: dict[str, None] = {}
    for entry in search_path.split(os.pathsep):
        folder = Path(entry)
        if entry and folder.is_absolute() and _is_folder(folder) and not _of_system(folder):
            for place in _places_of_folder(folder, Path(home)):
                found[str(place)] = None
    return _without_inner(found)


def _places_of_file(path: Path, home: Path) -> Iterator[Path]:
    """The folder of the file, and of every file that its links lead to."""
    for _ in range(_MOST_HOPS):
        if not _of_system(path):
            yield from _places_of_folder(path.parent, home, path)
        try:
            target = path.readlink()
        except OSError:
            return
        path = Path(os.path.normpath(path.parent / target))


def _places_of_folder(folder: Path, home: Path, file: Path | None = None) -> Iterator[Path]:
    packages = _outermost(folder, "node_modules")
    if packages is not None:
        yield packages
        return
    managed = _managed(folder, home)
    if managed is not None:
        yield from managed
        return
    prefix = folder.parent
    if (prefix / "pyvenv.cfg").is_file():
        yield prefix
        base = _base_of_venv(prefix)
        if base is not None and not _of_system(base):
            yield from _places_of_folder(base, home)
    elif folder.name in ("bin", "shims") and _is_installation(prefix, home):
        yield prefix
    elif _is_private(folder, home):
        # Beside a program there may lie anything: only the file itself is shown.
        if file is not None:
            yield file
    else:
        yield folder


def _managed(folder: Path, home: Path) -> tuple[Path, ...] | None:
    """Toolchain managers that keep more, or less, in their folder than programs need."""
    if folder == home / ".cargo" / "bin":
        # Not `.cargo` itself: it holds tokens of registries.
        return tuple(place for place in (folder, home / ".rustup") if place.exists())
    if folder == home / ".local" / "bin":
        tools = home / ".local" / "share" / "uv"
        return tuple(place for place in (folder, tools) if place.exists())
    for manager in (
        ".pyenv",
        ".nvm",
        ".rbenv",
        ".volta",
        ".sdkman",
        ".asdf",
        ".rustup",
        ".deno",
        ".bun",
    ):
        if (home / manager) in (folder, *folder.parents):
            return (home / manager,)
    return None


def _is_installation(prefix: Path, home: Path) -> bool:
    if _is_private(prefix, home):
        return False
    return any((prefix / name).is_dir() for name in ("lib", "lib64", "libexec", "include"))


def _is_private(folder: Path, home: Path) -> bool:
    return folder in (home, home / ".local", *home.parents)


def _base_of_venv(prefix: Path) -> Path | None:
    """The folder of the interpreter that a virtual environment was made with."""
    try:
        lines = (prefix / "pyvenv.cfg").read_text(errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() == "home" and Path(value.strip()).is_absolute():
            return Path(value.strip())
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


def _of_system(path: Path) -> bool:
    return any(path.is_relative_to(place) for place in SYSTEM)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def _without_inner(found: dict[str, None]) -> tuple[str, ...]:
    """The places without those that lie in another of them."""
    paths = [Path(text) for text in found]
    return tuple(str(path) for path in paths if not any(other in path.parents for other in paths))
