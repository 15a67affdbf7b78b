"""The private git directory a confined agent sees: built, borrowed from, its refs read as untrusted data, pipes removed.

It has its own settings, refs and index, and no objects: the user's are read through alternates. Nobody but
confined processes ever runs git on it once an agent could write there.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from podium.core.errors import NotPossibleNow
from podium.core.workspaces import WorkspaceRecord
from podium.git.repository import RepositoryState
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write
from podium.platform.folder_tree import files_within
from podium.platform.safe_open import read_start

BASE_OBJECTS = "base-objects"
"""Folder in which the user's objects are mounted, read-only."""
PRIVATE_CONFIG = "config"
PRIVATE_HOOKS = "hooks"
"""Settings and the empty folder of hooks as they are mounted, beside the directory itself."""
_INITIAL_COMMITS = "given"
"""Commits that the directory was made with."""

_MAX_EXCLUDE_BYTES = 1_000_000
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
_PUBLIC_REFS = ("refs/heads/", "refs/tags/", "refs/remotes/")
_SIMPLE = re.compile(r"[\w./+-]*", re.ASCII)


def private_settings(repository: RepositoryState) -> str:
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


def identity_settings(repository: RepositoryState) -> str:
    """Settings for the agent's home, so that it can commit in scratch repositories of its own."""
    return "".join(_setting(key, value) for key, value in _identity(repository))


def _identity(repository: RepositoryState) -> list[tuple[str, str]]:
    return [
        ("user.name", repository.setting("user.name") or "Podium"),
        ("user.email", repository.setting("user.email") or "podium@localhost"),
    ]


def _setting(key: str, value: str) -> str:
    section, name = key.split(".", 1)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    quoted = value if _SIMPLE.fullmatch(value) else f'"{escaped}"'
    return f"[{section}]\n\t{name} = {quoted}\n"


def build_private_dir(
    target: Path, repository: RepositoryState, *, branch: str, tip: str, worktree: str, admin: str
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
    """Return the alternates file: the folders of objects that it lacks."""
    # Mounted, the second line names the directory itself and counts for nothing; unmounted, the first is empty.
    return os.fsencode(f"../{BASE_OBJECTS}\n{git_dir}/objects\n")


def _packed_refs(repository: RepositoryState, branch: str, tip: str) -> str:
    lines = {name: line for name, line in repository.refs.items() if name.startswith(_PUBLIC_REFS)}
    lines[branch] = f"{tip} {branch}"
    ordered = sorted(lines, key=lambda name: name.encode(errors="surrogateescape"))
    head = "# pack-refs with: peeled fully-peeled sorted \n"
    return head + "".join(f"{lines[name]}\n" for name in ordered)


def note_initial_commits(private: Path, repository: RepositoryState) -> None:
    """Remember, beside the directory, which commits it was made with. What was noted before stays."""
    commits = initial_commits(private)
    lines = (line for name, line in repository.refs.items() if name.startswith(_PUBLIC_REFS))
    commits |= {line.split()[0] for line in lines}
    atomic_write(
        private / _INITIAL_COMMITS, "".join(f"{commit}\n" for commit in sorted(commits)).encode()
    )


def initial_commits(private: Path) -> set[str]:
    """Read the commits of its branches and tags when it was made: the user's own, no work of an agent."""
    try:
        return set((private / _INITIAL_COMMITS).read_text("ascii").split())
    except FileNotFoundError:
        return set()


def _excluded(repository: RepositoryState) -> str:
    """Return the user's ignore patterns, of this repository and global."""
    named = repository.setting("core.excludesfile")
    paths = [Path(repository.git_dir) / "info/exclude"]
    with suppress(RuntimeError):  # a home that is not known
        paths += [Path(named).expanduser()] if named else []
    return "\n".join(_texts(paths))


def _texts(paths: Iterable[Path]) -> Iterable[str]:
    for path in paths:
        with suppress(OSError), path.open("rb") as file:
            yield file.read(_MAX_EXCLUDE_BYTES).decode(errors="surrogateescape")


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode(errors="surrogateescape"))


def _copy_if_there(source: Path, target: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.copy2(source, target)


_MAX_BYTES_SIZE = 50_000_000
_OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REFLOG = re.compile(rb"^(?:[0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) ", re.MULTILINE)
_MAX_LOGS = 1000
_MAX_LOGS_BYTES = 100_000_000
_MAX_STRAYS = 200_000
_MAX_REFS = 20_000


def read_plain(path: Path, limit: int = _MAX_BYTES_SIZE) -> bytes:
    """The content of a real file; nothing for links, pipes and whatever else could be there."""
    with suppress(OSError):
        return read_start(path, limit)
    return b""


def read_head(git: Path, admin: str) -> str:
    """The branch that is checked out, or a commit when none is."""
    text = read_plain(git / "worktrees" / admin / "HEAD", 5000).decode(errors="replace").strip()
    return text.removeprefix("ref: ")


def read_ref(git: Path, name: str) -> str:
    """The commit a ref stands for; empty when there is none."""
    text = read_plain(git / name, 5000).decode(errors="replace").strip()
    if text:
        # One that leads to another ref stands for no commit of its own.
        return text if _OBJECT.fullmatch(text) else ""
    return _packed(git).get(name, "")


def read_refs(git: Path) -> dict[str, str]:
    """All refs, loose ones before packed ones."""
    refs = _packed(git)
    for file in _files(git / "refs", _MAX_REFS):
        text = read_plain(file, 5000).decode(errors="replace").strip()
        if _OBJECT.fullmatch(text):
            refs[str(file.relative_to(git))] = text
    return refs


class LoggedCommits(NamedTuple):
    """Commits named in logs, as far as they were read."""

    commits: list[str]
    """Newest first in each log."""
    whole: bool


def logged_commits(git: Path, admin: str) -> LoggedCommits:
    """Every commit that a ref or HEAD ever stood for; of very many, some."""
    commits: dict[str, None] = {}
    left = _MAX_LOGS_BYTES
    logs = [*_logs(git / "worktrees" / admin / "logs"), *_logs(git / "logs")]
    for log in logs[:_MAX_LOGS]:
        content = read_plain(log, left + 1)
        left -= len(content)
        if left < 0:
            break
        for commit in reversed(_REFLOG.findall(content)):
            commits[commit.decode()] = None
    return LoggedCommits(list(commits), whole=left >= 0 and len(logs) <= _MAX_LOGS)


def _logs(folder: Path) -> list[Path]:
    """Each once, under whatever names it has."""
    logs: dict[tuple[int, int], Path] = {}
    for log in _files(folder, _MAX_LOGS + 1):
        with suppress(OSError):
            about = log.lstat()
            logs.setdefault((about.st_dev, about.st_ino), log)
    return list(logs.values())


def stray_objects(git: Path) -> LoggedCommits:
    """Names of all objects that lie there one by one: commits that nothing names any more are among them."""
    names = []
    for folder in sorted((git / "objects").glob("[0-9a-f][0-9a-f]")):
        if folder.is_symlink():
            continue
        names += [f"{folder.name}{file.name}" for file in _files(folder, _MAX_STRAYS)]
        if len(names) > _MAX_STRAYS:
            break
    fitting = [name for name in names if _OBJECT.fullmatch(name)]
    return LoggedCommits(fitting[:_MAX_STRAYS], whole=len(names) <= _MAX_STRAYS)


def _files(folder: Path, most: int) -> Iterator[Path]:
    return (Path(entry.path) for entry in itertools.islice(files_within(folder), most))


def _packed(git: Path) -> dict[str, str]:
    refs: dict[str, str] = {}
    for line in read_plain(git / "packed-refs").decode(errors="replace").splitlines():
        commit, _, name = line.partition(" ")
        if _OBJECT.fullmatch(commit) and name.startswith("refs/"):
            refs[name] = commit
    return refs


_MAX_DEPTH = 5
"""git follows no further either."""
_MAX_ALTERNATES_BYTES = 1_000_000


def alternates_of(objects: str) -> list[tuple[str, str]]:
    """Each folder as git names it and its real path, nearest first."""
    folders: dict[str, str] = {}
    level = [objects]
    for _ in range(_MAX_DEPTH):
        level = [path for folder in level for path in _named_in(folder) if path not in folders]
        for path in level:
            folders[path] = os.path.realpath(path)
    # Git itself reports a folder that is gone.
    return [(named, real) for named, real in folders.items() if Path(real).is_dir()]


def _named_in(objects: str) -> list[str]:
    text = ""
    path = Path(objects, "info/alternates")
    with suppress(FileNotFoundError, NotADirectoryError), path.open("rb") as file:
        text = os.fsdecode(file.read(_MAX_ALTERNATES_BYTES))
    named = []
    for line in text.splitlines():
        if line.startswith('"'):
            raise NotPossibleNow(
                f"the repository borrows objects from {line}, whose path has special characters; move that repository, or make this "
                "one complete with `git repack -a -d`"
            )
        if line and not line.startswith("#"):
            # git resolves links of the folder that borrows, then reads the path as text.
            named.append(os.path.normpath(Path(os.path.realpath(objects), line)))
    return named


def make_borrower(folder: Path, record: WorkspaceRecord, tip: str) -> None:
    """Make it in an empty folder, with the workspace's branch at `tip` as its only ref."""
    for inner in ("objects/info", "refs"):
        make_private_folder(folder / inner)
    sha256 = len(tip) == 64
    version = "1\n[extensions]\n\tobjectformat = sha256" if sha256 else "0"
    (folder / "config").write_text(f"[core]\n\trepositoryformatversion = {version}\n")
    (folder / "HEAD").write_text(f"ref: {record.branch}\n")
    (folder / "packed-refs").write_text(f"{tip} {record.branch}\n")
    private, users = Path(record.private, "git/objects"), Path(record.git_dir, "objects")
    (folder / "objects/info/alternates").write_text(f"{private}\n{users}\n")


def mend_private_dir(record: WorkspaceRecord) -> None:
    """Let nothing in the private git directory keep git waiting, or lead it to other repositories' objects.

    Only while no process of the agent lives.
    """
    git = Path(record.private, "git")
    remove_pipes(git)
    path, content = git / "objects/info/alternates", borrowed_objects(record.git_dir)
    if read_plain(path) != content and not path.parent.is_symlink():
        with suppress(OSError):
            if path.is_symlink():
                path.unlink()
            atomic_write(path, content)


def remove_pipes(folder: Path) -> None:
    """There is nothing in them. A link to one goes too."""
    links = []
    for entry in files_within(folder):
        with suppress(OSError):
            if entry.is_symlink():
                links.append(entry.path)
            elif not entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)  # noqa: PTH108
    for link in links:
        with suppress(OSError):
            mode = os.stat(link).st_mode  # noqa: PTH116
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                os.unlink(link)  # noqa: PTH108
