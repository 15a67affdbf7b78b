"""Layouts of installations: parts that programs read, and places that are never shown (keys, histories, records, work).

Tokens lie there too: in `etc/npmrc` of a node, in `pip.conf` of a python, in the `credentials` of uv and cargo.

Asked of real places, and of folders by what they are as well as by how they are called: where capitals do not
count, or a folder is mounted twice, one place has many names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from podium.core.protected_paths import GIT_DIR, STATE_DIR, comparable

_HISTORIES = frozenset({GIT_DIR, ".hg", ".svn", ".jj", ".bzr", STATE_DIR})
_KEYS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store", "keyrings"})
_OF_WORK = _HISTORIES | {"podium.yaml"}
_OF_HOMES = frozenset({".config", ".bashrc", ".zshrc", ".profile", ".netrc", ".git-credentials"})
_BARE = frozenset({"head", "objects", "refs"})
"""Top-level names of a repository without a checkout."""


class PathSet:
    """Some places, and what they hold and lie in."""

    def __init__(self, paths: Iterable[str | Path]) -> None:
        self._reals = [real_path(path) for path in paths if str(path)]
        self._identities = {identity for path in self._reals if (identity := _identity(path))}
        above = {folder for path in self._reals for folder in (path, *path.parents)}
        self._above = above, {identity for path in above if (identity := _identity(path))}
        # Most that is asked for lies in few folders.
        self.are_at = cache(self._are_at)

    def _are_at(self, real: Path) -> bool:
        """Tell whether this is one of the places."""
        return real in self._reals or _identity(real) in self._identities

    def hold(self, real: Path) -> bool:
        """Tell whether this is one of the places, or lies in one."""
        return bool(self._reals) and any(map(self.are_at, (real, *real.parents)))

    def lie_in(self, real: Path) -> bool:
        """Tell whether this is one of the places, or holds one."""
        paths, identities = self._above
        return real in paths or _identity(real) in identities


class Workplaces:
    """Tells folders that people work in from those that things are installed in."""

    def __init__(self, project: str, home: Path) -> None:
        # A home may be kept under version control, or be the project: what lies in it is judged by itself.
        self._beyond = {home, *home.parents}
        self._project = PathSet([project] if real_path(project) not in self._beyond else [])
        self._names = cache(_names)

    def hold(self, real: Path) -> bool:
        """Tell whether this lies in the project, or in any other checkout."""
        if self._project.hold(real):
            return True
        above = (folder for folder in (real, *real.parents) if folder not in self._beyond)
        return any(self._is_checkout(folder) for folder in above)

    def lie_in(self, real: Path) -> bool:
        """Tell whether the project lies in this, or some checkout right below it."""
        if self._project.lie_in(real):
            return True
        return any(self._is_checkout(folder) for folder in _folders_in(real))

    def are_marked(self, real: Path) -> bool:
        """Tell whether this folder itself holds what a person keeps for himself."""
        names = self._names(real)
        work_names = _OF_WORK | _OF_HOMES | _KEYS
        return bool(names & work_names) or any(name.startswith(".env") for name in names)

    def _is_checkout(self, folder: Path) -> bool:
        names = self._names(folder)
        return bool(names & _OF_WORK) or names >= _BARE


def is_guarded(real: Path) -> bool:
    """Tell whether this lies in a folder of keys, of a history or of a record."""
    return any(comparable(part) in _HISTORIES | _KEYS for part in real.parts)


def real_path(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def _names(folder: Path) -> frozenset[str]:
    try:
        return frozenset(path.name.casefold() for path in folder.iterdir())
    except OSError:
        return frozenset()


def _folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


PROGRAM_FOLDERS = ("bin", "sbin", "shims", ".bin")
LIBRARY_FOLDERS = ("lib", "lib64", "libexec", "include")
"""One of these beside a folder of programs tells that both belong to an installation."""
_PARTS = (*PROGRAM_FOLDERS, *LIBRARY_FOLDERS, "lib32", "libx32", "share", "man")
PYTHON_PARTS = ("bin", "lib/python*", "lib64/python*", "lib/libpython*", "pyvenv.cfg")
"""All that a python needs where other things lie beside it."""


class MountLayout(NamedTuple):
    sign: str
    """A path that is there if this is one. As everywhere here, `*` stands for one name or a piece of it."""
    parts: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    """Installations inside, each shown by its own parts."""


_SHAPES = (
    MountLayout("pyvenv.cfg", ("pyvenv.cfg",)),
    MountLayout("Resources/Python.app", ("Resources", "Python", "Headers")),
    MountLayout("src/cmd/go", ("src", "pkg", "misc", "api", "test", "VERSION", "go.env")),
    MountLayout(
        "bin/java",
        (
            *("release", "jmods", "legal", "jre"),
            *("conf/security", "conf/net.properties", "conf/logging.properties"),
        ),
    ),
    MountLayout("bin/mvn", ("boot", "conf/logging")),
    MountLayout(
        "conda-meta", ("conda-meta", "condabin", "ssl", "compiler_compat", "*-conda*-linux-gnu")
    ),
    MountLayout("erts-*", ("erts-*", "releases", "usr")),
    MountLayout("bin/*-gcc", ("*-none-*", "*-linux-*", "*-elf", "*-w64-*")),
)

_PLUGINS = tuple(
    f"plugins/*/{name}" for name in ("bin", "lib", "libexec", "shims", "share", "etc/pyenv.d")
)
_BREW = MountLayout(
    "Cellar",
    (
        *_PARTS,
        *("Cellar", "opt", "Frameworks", "etc/ca-certificates"),
        *("etc/openssl@3/cert.pem", "etc/openssl@3/openssl.cnf"),
    ),
)
_MANAGERS = {
    "pyenv": MountLayout(
        "versions",
        ("bin", "shims", "libexec", "completions", "pyenv.d", "version", *_PLUGINS),
        ("versions/*", "versions/*/envs/*"),
    ),
    "rbenv": MountLayout(
        "versions",
        ("bin", "shims", "libexec", "completions", "rbenv.d", "version", *_PLUGINS),
        ("versions/*",),
    ),
    "nvm": MountLayout(
        "nvm.sh", ("nvm.sh", "nvm-exec", "bash_completion", "alias"), ("versions/*/*",)
    ),
    "volta": MountLayout(
        "tools",
        (
            *("bin", "layout.v*", "tools/user"),
            *("tools/image/npm/*", "tools/image/pnpm/*", "tools/image/yarn/*"),
        ),
        ("tools/image/node/*", "tools/image/packages/*", "tools/image/packages/@*/*"),
    ),
    "sdkman": MountLayout("candidates", ("bin", "libexec"), ("candidates/*/*",)),
    "asdf": MountLayout(
        "installs",
        (
            *("bin", "lib", "libexec", "shims", "completions", "asdf.sh", *_PLUGINS),
            *("installs/rust/*/toolchains", "installs/rust/*/settings.toml"),
        ),
        ("installs/*/*", "installs/*/*/go"),
    ),
    "mise": MountLayout("installs", ("shims", *_PLUGINS), ("installs/*/*",)),
    "rustup": MountLayout("toolchains", ("settings.toml", "update-hashes"), ("toolchains/*",)),
    "deno": MountLayout("bin", ("bin",)),
    "bun": MountLayout("bin", ("bin", "install/global/node_modules")),
    "homebrew": _BREW,
    "linuxbrew": _BREW,
}
"""By the name of their folder, which may begin with a dot. Many are checkouts of their own program."""
BESIDE_LOCAL_PROGRAMS = {
    "share/uv": MountLayout("*", (), ("python/*", "tools/*")),
    "share/pipx": MountLayout("venvs", (), ("venvs/*", "shared")),
    "pipx": MountLayout("venvs", (), ("venvs/*", "shared")),
}
"""The real folders of programs in `~/.local/bin`, seen from `~/.local`."""


def manager_at(folder: Path) -> MountLayout | None:
    """The layout of a manager of toolchains, if this is the folder of one."""
    layout = _MANAGERS.get(folder.name.removeprefix(".").casefold())
    return layout if layout and (folder / layout.sign).exists() else None


def parts_of(prefix: Path) -> Iterator[Path]:
    """Yield the parts of an installation that programs need."""
    names = [*_PARTS]
    for shape in _SHAPES:
        if any(prefix.glob(shape.sign)):
            names += shape.parts
    yield from named_parts(prefix, names)


def has_shape(prefix: Path) -> bool:
    """Tell whether something is installed here."""
    if any((prefix / name).is_dir() for name in LIBRARY_FOLDERS):
        return True
    return any(any(prefix.glob(shape.sign)) for shape in _SHAPES)


def parts_of_manager(folder: Path, layout: MountLayout) -> Iterator[Path]:
    """Yield the parts of all that it manages which programs need."""
    yield from named_parts(folder, layout.parts)
    for prefix in named_parts(folder, layout.prefixes):
        if prefix.is_dir():
            yield from parts_of(prefix)


def named_parts(prefix: Path, names: Iterable[str]) -> Iterator[Path]:
    """Those that are there. A link that leads out of the installation names no part of it."""
    real = real_path(prefix)
    for name in dict.fromkeys(names):
        for path in sorted(prefix.glob(name)):
            if real_path(path).is_relative_to(real):
                yield path
