"""What is shown of an installation: the parts that programs read, and none of what lies beside them.

Tokens lie there too: in `etc/npmrc` of a node, in `pip.conf` of a python, in the `credentials` of uv and cargo.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from podium.sandbox.confining.guarded_places import real_place

PROGRAM_FOLDERS = ("bin", "sbin", "shims", ".bin")
LIBRARY_FOLDERS = ("lib", "lib64", "libexec", "include")
"""One of these beside a folder of programs tells that both belong to an installation."""
_PARTS = (*PROGRAM_FOLDERS, *LIBRARY_FOLDERS, "lib32", "libx32", "share", "man")
PYTHON_PARTS = ("bin", "lib/python*", "lib64/python*", "lib/libpython*", "pyvenv.cfg")
"""All that a python needs where other things lie beside it."""


class Layout(NamedTuple):
    sign: str
    """What is there if this is one. As everywhere here, `*` stands for one name or a piece of it."""
    parts: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    """Installations inside, each shown by its own parts."""


_SHAPES = (
    Layout("pyvenv.cfg", ("pyvenv.cfg",)),
    Layout("Resources/Python.app", ("Resources", "Python", "Headers")),
    Layout("src/cmd/go", ("src", "pkg", "misc", "api", "test", "VERSION", "go.env")),
    Layout(
        "bin/java",
        (
            *("release", "jmods", "legal", "jre"),
            *("conf/security", "conf/net.properties", "conf/logging.properties"),
        ),
    ),
    Layout("bin/mvn", ("boot", "conf/logging")),
    Layout(
        "conda-meta", ("conda-meta", "condabin", "ssl", "compiler_compat", "*-conda*-linux-gnu")
    ),
    Layout("erts-*", ("erts-*", "releases", "usr")),
    Layout("bin/*-gcc", ("*-none-*", "*-linux-*", "*-elf", "*-w64-*")),
)

_PLUGINS = tuple(
    f"plugins/*/{name}" for name in ("bin", "lib", "libexec", "shims", "share", "etc/pyenv.d")
)
_BREW = Layout(
    "Cellar",
    (
        *_PARTS,
        *("Cellar", "opt", "Frameworks", "etc/ca-certificates"),
        *("etc/openssl@3/cert.pem", "etc/openssl@3/openssl.cnf"),
    ),
)
_MANAGERS = {
    "pyenv": Layout(
        "versions",
        ("bin", "shims", "libexec", "completions", "pyenv.d", "version", *_PLUGINS),
        ("versions/*", "versions/*/envs/*"),
    ),
    "rbenv": Layout(
        "versions",
        ("bin", "shims", "libexec", "completions", "rbenv.d", "version", *_PLUGINS),
        ("versions/*",),
    ),
    "nvm": Layout("nvm.sh", ("nvm.sh", "nvm-exec", "bash_completion", "alias"), ("versions/*/*",)),
    "volta": Layout(
        "tools",
        (
            *("bin", "layout.v*", "tools/user"),
            *("tools/image/npm/*", "tools/image/pnpm/*", "tools/image/yarn/*"),
        ),
        ("tools/image/node/*", "tools/image/packages/*", "tools/image/packages/@*/*"),
    ),
    "sdkman": Layout("candidates", ("bin", "libexec"), ("candidates/*/*",)),
    "asdf": Layout(
        "installs",
        (
            *("bin", "lib", "libexec", "shims", "completions", "asdf.sh", *_PLUGINS),
            *("installs/rust/*/toolchains", "installs/rust/*/settings.toml"),
        ),
        ("installs/*/*", "installs/*/*/go"),
    ),
    "mise": Layout("installs", ("shims", *_PLUGINS), ("installs/*/*",)),
    "rustup": Layout("toolchains", ("settings.toml", "update-hashes"), ("toolchains/*",)),
    "deno": Layout("bin", ("bin",)),
    "bun": Layout("bin", ("bin", "install/global/node_modules")),
    "homebrew": _BREW,
    "linuxbrew": _BREW,
}
"""By the name of their folder, which may begin with a dot. Many are checkouts of their own program."""
BESIDE_LOCAL_PROGRAMS = {
    "share/uv": Layout("*", (), ("python/*", "tools/*")),
    "share/pipx": Layout("venvs", (), ("venvs/*", "shared")),
    "pipx": Layout("venvs", (), ("venvs/*", "shared")),
}
"""Where programs in `~/.local/bin` really lie, seen from `~/.local`."""


def manager_at(folder: Path) -> Layout | None:
    """How a manager of toolchains is laid out, if this is the folder of one."""
    layout = _MANAGERS.get(folder.name.removeprefix(".").casefold())
    return layout if layout and (folder / layout.sign).exists() else None


def parts_of(prefix: Path) -> Iterator[Path]:
    """What programs need of an installation."""
    names = [*_PARTS]
    for shape in _SHAPES:
        if any(prefix.glob(shape.sign)):
            names += shape.parts
    yield from named_parts(prefix, names)


def has_shape(prefix: Path) -> bool:
    """Whether something is installed here."""
    if any((prefix / name).is_dir() for name in LIBRARY_FOLDERS):
        return True
    return any(any(prefix.glob(shape.sign)) for shape in _SHAPES)


def parts_of_manager(folder: Path, layout: Layout) -> Iterator[Path]:
    """What programs need of all that it manages."""
    yield from named_parts(folder, layout.parts)
    for prefix in named_parts(folder, layout.prefixes):
        if prefix.is_dir():
            yield from parts_of(prefix)


def named_parts(prefix: Path, names: Iterable[str]) -> Iterator[Path]:
    """Those that are there. A link that leads out of the installation names no part of it."""
    real = real_place(prefix)
    for name in dict.fromkeys(names):
        for place in sorted(prefix.glob(name)):
            if real_place(place).is_relative_to(real):
                yield place
