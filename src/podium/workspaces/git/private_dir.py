"""The private git directory: what a confined agent sees in place of the user's `.git`.

It has its own settings, refs and index, and no objects: the user's are read through alternates. Nobody but
confined processes ever runs git on it once an agent could write there.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from podium.platform import make_private_folder
from podium.workspaces.git.records import write_whole
from podium.workspaces.git.repository import Repository

BASE_OBJECTS = "base-objects"
"""Where the user's objects are mounted, read-only."""
PRIVATE_CONFIG = "config"
PRIVATE_HOOKS = "hooks"
"""Settings and the empty folder of hooks as they are mounted, beside the directory itself."""
GIVEN = "given"
"""Commits that the directory was made with."""

_LARGEST_EXCLUDE_BYTES = 1_000_000
_CARRIED = (
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "i18n.commitencoding",
    "merge.conflictstyle",
    "merge.renamelimit",
    "diff.algorithm",
    "diff.renamelimit",
)
"""Settings of the user that decide what files look like and that cannot start anything."""
_SHOWN_REFS = ("refs/heads/", "refs/tags/", "refs/remotes/")
_SIMPLE = re.compile(r"[\w./+-]*", re.ASCII)


def private_settings(repository: Repository) -> str:
    """The text of its `config`: no remotes, no credentials, nothing that starts a program."""
    sha256 = repository.object_format == "sha256"
    lines = [
        ("core.repositoryformatversion", "1" if sha256 else "0"),
        ("core.bare", "false"),
        ("core.logallrefupdates", "true"),
        *_identity(repository),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("commit.gpgsign", "false"),
    ]
    lines += [("extensions.objectformat", "sha256")] if sha256 else []
    lines += [(key, repository.settings[key]) for key in _CARRIED if key in repository.settings]
    return "".join(_setting(key, value) for key, value in lines)


def identity_settings(repository: Repository) -> str:
    """Settings for the agent's home, so that it can commit in scratch repositories of its own."""
    return "".join(_setting(key, value) for key, value in _identity(repository))


def _identity(repository: Repository) -> list[tuple[str, str]]:
    return [
        ("user.name", repository.setting("user.name") or "Podium"),
        ("user.email", repository.setting("user.email") or "podium@localhost"),
    ]


def _setting(key: str, value: str) -> str:
    section, name = key.split(".", 1)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    shown = value if _SIMPLE.fullmatch(value) else f'"{escaped}"'
    return f"[{section}]\n\t{name} = {shown}\n"


def build_private_dir(
    target: Path, repository: Repository, *, branch: str, tip: str, worktree: str, admin: str
) -> None:
    """Make it in a folder that does not exist yet. The index is copied from the worktree's real one."""
    for folder in ("objects/info", "objects/pack", BASE_OBJECTS, "refs/heads", "hooks", "info"):
        make_private_folder(target / folder)
    own = target / "worktrees" / admin
    # Empty: in a clone of a worktree git takes the relative alternate from here, and complains where there is none.
    make_private_folder(own / BASE_OBJECTS)
    _write(target / "config", private_settings(repository))
    # A branch that nobody has, so that git takes none for checked out in the folder above.
    _write(target / "HEAD", "ref: refs/heads/podium-checkout-of-the-user\n")
    _write(target / "packed-refs", _packed_refs(repository, branch, tip))
    (target / "objects/info/alternates").write_bytes(borrowed_objects(repository.git_dir))
    _write(target / "info/exclude", _excluded(repository))
    _write(own / "HEAD", f"ref: {branch}\n")
    _write(own / "commondir", "../..\n")
    _write(own / "gitdir", f"{worktree}/.git\n")
    real = Path(repository.git_dir) / "worktrees" / admin
    _copy_if_there(real / "index", own / "index")
    _copy_if_there(Path(repository.git_dir) / "shallow", target / "shallow")
    if (real / "info/sparse-checkout").exists():
        make_private_folder(own / "info")
        _copy_if_there(real / "info/sparse-checkout", own / "info/sparse-checkout")


def borrowed_objects(git_dir: str) -> bytes:
    """Where objects are found that it lacks."""
    # Mounted, the second line names the directory itself and counts for nothing; unmounted, the first is empty.
    return os.fsencode(f"../{BASE_OBJECTS}\n{git_dir}/objects\n")


def _packed_refs(repository: Repository, branch: str, tip: str) -> str:
    shown = {name: line for name, line in repository.refs.items() if name.startswith(_SHOWN_REFS)}
    shown[branch] = f"{tip} {branch}"
    ordered = sorted(shown, key=lambda name: name.encode(errors="surrogateescape"))
    head = "# pack-refs with: peeled fully-peeled sorted \n"
    return head + "".join(f"{shown[name]}\n" for name in ordered)


def note_given(private: Path, repository: Repository) -> None:
    """Remember, beside the directory, which commits it was made with. What was noted before stays."""
    known = given_commits(private)
    shown = (line for name, line in repository.refs.items() if name.startswith(_SHOWN_REFS))
    known |= {line.split()[0] for line in shown}
    write_whole(private / GIVEN, "".join(f"{each}\n" for each in sorted(known)).encode())


def given_commits(private: Path) -> set[str]:
    """What its branches and tags stood for when it was made: the user's, and no work."""
    try:
        return set((private / GIVEN).read_text("ascii").split())
    except FileNotFoundError:
        return set()


def _excluded(repository: Repository) -> str:
    """What the user ignores in this repository and everywhere."""
    named = repository.setting("core.excludesfile")
    places = [Path(repository.git_dir) / "info/exclude"]
    with suppress(RuntimeError):  # a home that is not known
        places += [Path(named).expanduser()] if named else []
    return "\n".join(_texts(places))


def _texts(places: Iterable[Path]) -> Iterable[str]:
    for place in places:
        with suppress(OSError), place.open("rb") as file:
            yield file.read(_LARGEST_EXCLUDE_BYTES).decode(errors="surrogateescape")


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode(errors="surrogateescape"))


def _copy_if_there(source: Path, target: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.copy2(source, target)
