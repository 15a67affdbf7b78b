"""The supervisor's own git directory for a worktree, which no agent ever sees.

It has its own index, HEAD, settings and ignored names. Of the private git directory, in which an agent may
have written anything, it uses the objects alone, and reads and writes refs as plain data. git runs inside
the workspace's confinement there too: those objects are the agent's.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from podium.core.processes import Confinement, Mount, ProcessExit
from podium.core.workspaces import WorkspaceRecord
from podium.git.git_command import Git
from podium.git.layout import confinement_of
from podium.git.private_dir import BASE_OBJECTS, PRIVATE_CONFIG, mend_private_dir, read_plain
from podium.git.worktree_files import ignoring, remove_file, write_files
from podium.platform import make_private_folder
from podium.platform.atomic_write import atomic_write

SUPERVISOR_REPO = "desk"
_AT = "at"
"""File with the commit that the index is of. Missing while git is about to change the index."""
_MADE = "made"
"""Commits that Podium made here, by what they were made for."""
_MERGING = "merging"
"""The tip and what was about to be merged into it."""
_EVERYWHERE = "info/everywhere"
_MAX_BYTES_SIZE = 1_000_000
_MAX_INDEX_BYTES = 2_000_000_000
_STATE_OF_A_MERGE = ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "AUTO_MERGE", "ORIG_HEAD")
_SETTINGS = (
    "core.logAllRefUpdates=false",
    "commit.gpgSign=false",
    "i18n.commitEncoding=utf-8",
    "i18n.logOutputEncoding=utf-8",
    "rerere.enabled=false",
    "status.showUntrackedFiles=no",
    "advice.detachedHead=false",
    "advice.addEmbeddedRepo=false",
)


class SupervisorRepo:
    """Runs git for Podium itself in one worktree. Its user holds the workspace's lock."""

    def __init__(self, git: Git, record: WorkspaceRecord, *, confined: bool) -> None:
        self._git = git
        self._record = record
        self._confined = confined
        self._confinement = Confinement()
        self._mended = False
        self.folder = Path(record.private, SUPERVISOR_REPO)

    async def sit_down(self) -> None:
        """Check the workspace and make what is missing. Raises `WorkspaceTampered`."""
        confinement = await asyncio.to_thread(confinement_of, self._record)
        if not self._mended:
            # After each turn it is done anyway; this is for one whose Podium was killed.
            await asyncio.to_thread(mend_private_dir, self._record)
            self._mended = True
        supervisor_repo = Mount(source=str(self.folder), target=str(self.folder), writable=True)
        # Forbidden paths are for agents: a merge takes the user's own changes of them.
        self._confinement = confinement.model_copy(
            update={
                "mounts": (*confinement.mounts, supervisor_repo),
                "pinned": (),
                "unmounted_env": self._object_dirs(mounted=False),
            }
        )
        await asyncio.to_thread(self._make)
        if not (self.folder / _EVERYWHERE).exists():
            atomic_write(self.folder / _EVERYWHERE, await self._ignored_everywhere())
        await asyncio.to_thread(self.ignore)

    async def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        settings: Sequence[str] = (),
        output_bytes: int = 64_000_000,
        cut: bool = False,
        accept: Sequence[int] = (0,),
        after: Sequence[tuple[Sequence[str], bytes]] = (),
    ) -> ProcessExit:
        """Run git here, inside the confinement. `after` are arguments and inputs of others that run before it."""
        inputs = [
            (command, self.folder / f"{command[0]}.input", content) for command, content in after
        ]
        for _, file, content in inputs:
            await asyncio.to_thread(file.write_bytes, content)
        return await self._git.run(
            *arguments,
            cwd=self._record.path,
            settings=(*_SETTINGS, *settings),
            env={
                "HOME": str(self.folder),
                "GIT_OPTIONAL_LOCKS": "1",
                **self._object_dirs(mounted=self._confined),
                **(env or {}),
            },
            stdin=stdin,
            output_bytes=output_bytes,
            confinement=self._confinement if self._confined else None,
            cut=cut,
            accept=accept,
            after=[(command, str(file)) for command, file, _ in inputs],
        )

    def _object_dirs(self, *, mounted: bool) -> dict[str, str]:
        """Return the variables for git: when mounted, the private directory replaces the user's."""
        users = f"{self._record.git_dir}/objects"
        private = f"{self._record.private}/git/objects"
        own, borrowed = (
            (users, f"{self._record.git_dir}/{BASE_OBJECTS}") if mounted else (private, users)
        )
        escaped = borrowed.replace("\\", "\\\\").replace('"', '\\"')
        return {
            "GIT_DIR": str(self.folder),
            "GIT_WORK_TREE": self._record.path,
            "GIT_OBJECT_DIRECTORY": own,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{escaped}"',
        }

    async def stand_at(self, commit: str) -> None:
        """Let HEAD and index be those of a commit. The worktree's files stay as they are."""
        if await asyncio.to_thread(self._is_at, commit):
            return
        self.leave()
        for name in _STATE_OF_A_MERGE:
            (self.folder / name).unlink(missing_ok=True)
        (self.folder / "HEAD").write_text(f"{commit}\n")
        await self.run("read-tree", "--reset", commit)
        self.note_at(commit)

    def _is_at(self, commit: str) -> bool:
        return self._read(_AT) == commit and (self.folder / "index").exists()

    def leave(self) -> None:
        """From here on index and HEAD may be anything, until `note_at`."""
        (self.folder / _AT).unlink(missing_ok=True)

    def note_at(self, commit: str) -> None:
        atomic_write(self.folder / _AT, commit.encode())

    def is_away(self) -> bool:
        """Check that git ran here and its result was not taken over yet."""
        return not (self.folder / _AT).exists()

    def head(self) -> str:
        return self._read("HEAD")

    def merge_head(self) -> str:
        return self._read("MERGE_HEAD")

    def _read(self, name: str) -> str:
        return read_plain(self.folder / name, 5000).decode(errors="replace").strip()

    def noted_merge(self) -> str:
        return self._read(_MERGING)

    def note_merge(self, what: str) -> None:
        atomic_write(self.folder / _MERGING, what.encode())

    def forget_merge(self) -> None:
        (self.folder / _MERGING).unlink(missing_ok=True)

    def made(self, what_for: str) -> str:
        """The commit that was made for it; empty when none was."""
        commit = self._all_made().get(what_for, "")
        return commit if isinstance(commit, str) else ""

    def note_made(self, what_for: str, commit: str) -> None:
        noted = self._all_made() | {what_for: commit}
        atomic_write(self.folder / _MADE, json.dumps(noted).encode())

    def _all_made(self) -> dict[str, object]:
        with suppress(ValueError):
            noted = json.loads(read_plain(self.folder / _MADE) or b"{}")
            return noted if isinstance(noted, dict) else {}
        return {}

    def hand_over(self, files: Mapping[str, str] | None = None) -> None:
        """Give the agent's git this index, and the files beside it in this order."""
        own = f"worktrees/{self._record.admin}"
        git = Path(self._record.private, "git")
        remove_file(git, f"{own}/index.lock")  # of a killed git: no process lives here
        remove_file(git, f"{own}/HEAD.lock")
        index = read_plain(self.folder / "index", _MAX_INDEX_BYTES)
        write_files(git, {f"{own}/index": index})
        for name, text in (files or {}).items():
            write_files(git, {f"{own}/{name}": text.encode(errors="replace")})

    def publish(self, commit: str) -> None:
        """Move the workspace's branch to the commit of this repository's HEAD.

        The index goes first: with an older one, the agent's next commit would undo this one.
        """
        self.hand_over()
        git = Path(self._record.private, "git")
        remove_file(git, f"{self._record.branch}.lock")
        write_files(git, {self._record.branch: f"{commit}\n".encode()})
        self.note_at(commit)

    def agents_index(self) -> dict[str, str]:
        """Variables for git to look at a copy of the agent's own index."""
        own = Path(self._record.private, "git/worktrees", self._record.admin, "index")
        copy = self.folder / "agents.index"
        copy.write_bytes(read_plain(own, _MAX_INDEX_BYTES))
        return {"GIT_INDEX_FILE": str(copy)}

    def _make(self) -> None:
        for inner in ("refs", "info"):
            make_private_folder(self.folder / inner)
        for lock in ("index.lock", "HEAD.lock"):
            (self.folder / lock).unlink(missing_ok=True)
        private, users = Path(self._record.private), Path(self._record.git_dir)
        worktrees = users / "worktrees" / self._record.admin
        _copy(private / PRIVATE_CONFIG, self.folder / "config")
        _copy(users / "shallow", self.folder / "shallow")
        _copy(worktrees / "info/sparse-checkout", self.folder / "info/sparse-checkout")
        if not (self.folder / "index").exists():
            _copy(worktrees / "index", self.folder / "index")
        if not (self.folder / "HEAD").exists():
            (self.folder / "HEAD").write_text(f"{self._record.base}\n")

    def ignore(self, more: Sequence[str] = ()) -> None:
        """Write the exclude list: the user's patterns, copied files, and further paths."""
        texts = [
            read_plain(Path(self._record.git_dir, "info/exclude"), _MAX_BYTES_SIZE),
            read_plain(self.folder / _EVERYWHERE, _MAX_BYTES_SIZE),
            os.fsencode(ignoring((*self._record.copied, *more))),
        ]
        (self.folder / "info/exclude").write_bytes(b"\n".join(texts))

    async def _ignored_everywhere(self) -> bytes:
        """Read the user's global ignore patterns, as they were when this repository was made."""
        ended = await self._git.run(
            "config", "--null", "--show-scope", "--get-all", "core.excludesfile",
            git_dir=self._record.git_dir, user_settings=True, accept=(0, 1),
        )  # fmt: skip
        fields = ended.stdout.decode(errors="surrogateescape").split("\0")
        pairs = zip(fields[::2], fields[1::2], strict=False)
        named = [path for scope, path in pairs if scope != "command"]
        return await asyncio.to_thread(_beginning, named[-1]) if named else b""


def _beginning(named: str) -> bytes:
    with suppress(OSError, RuntimeError), Path(named).expanduser().open("rb") as file:
        return file.read(_MAX_BYTES_SIZE)
    return b""


def _copy(source: Path, target: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.copyfile(source, target)


_AT_ONCE = 200
_MAX_BYTES = 20_000_000
_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}


async def tracked_in(supervisor_repo: SupervisorRepo, patterns: Sequence[str]) -> list[str]:
    """Files in git's index that fit one of the pathspecs. None of them: all."""
    return await _listed(supervisor_repo, "-z", "--", *patterns)


async def ignored_in(supervisor_repo: SupervisorRepo) -> list[str]:
    """Ignored files, and folders of which all is ignored; these end with `/`."""
    return await _listed(
        supervisor_repo, "-z", "--others", "--ignored", "--exclude-standard", "--directory"
    )


async def _listed(supervisor_repo: SupervisorRepo, *options: str) -> list[str]:
    ended = await supervisor_repo.run("ls-files", *options, output_bytes=_MAX_BYTES, cut=True)
    names = ended.stdout.decode(errors="surrogateescape").split("\0")
    return [name for name in names if name]


async def clear_ignored_in(
    supervisor_repo: SupervisorRepo, keep: Sequence[str], keep_names: Sequence[str]
) -> list[str]:
    """Remove them, but for the paths in `keep` and whatever lies in a folder with one of the names."""
    excluded, names = set(keep), set(keep_names)
    ignored = await ignored_in(supervisor_repo)
    gone = [
        path
        for path in ignored
        if path not in excluded and names.isdisjoint(PurePosixPath(path).parts)
    ]
    for start in range(0, len(gone), _AT_ONCE):
        # Inside the confinement, where a link leads nowhere; twice -f also takes planted repositories.
        some = gone[start : start + _AT_ONCE]
        await supervisor_repo.run(
            "clean", "-ffdxq", "--", *map(_text, some), env=_LITERAL, accept=(0, 1)
        )
    return gone


def _text(path: str) -> str:
    return os.fsdecode(os.fsencode(path))
