"""Inventory of Podium's files on this machine: the projects of the user, their data, and the owner of each workspace.

Projects are known by the notes beside their keys (`project_identity`), and by the repositories that have workspaces.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from podium.app.workspaces import survey_workspaces
from podium.config.folders import STATE_FOLDER, Folders, project_id_in
from podium.config.project_identity import LOCATION, noted_path
from podium.core.errors import PodiumError
from podium.core.model import FrozenModel
from podium.core.work import RunStatus
from podium.core.workspaces import WorkLocation, WorkspaceRecord
from podium.platform.file_lock import is_locked
from podium.ports import Workspaces
from podium.render.text import counted
from podium.store import DATABASE_NAME, run_statuses

if TYPE_CHECKING:
    from podium.app.app import Podium

REMOVED_PREFIX = ".podium-removed-"
"""Beginning of the name of a state folder that is being removed; the project's id follows, or `none` where its keys stay."""
NO_ID = "none"

KINDS = ("grounds", "homes", "vaults")
"""Folders of the user's state with one folder for each project."""
_OWN_IN_PROJECT = re.compile(
    r"\.gitignore|project-id|podium\.db(-\d{8}T\d{6}Z)?(-wal|-shm|-journal)?|database|reserve|doorbell|workers|runs|pull_requests"
    r"|operator|notices|kept|sense|duet|worker\.log|\.(project-id|database)-\w+"
)
_OF_THE_USER = {
    "prompts": "prompts that you wrote",
    "trash": "files that were trashed and can be restored",
    "packs": "data of packs",
}
_OWN_SETTINGS = re.compile(r"config\.yaml|credentials\.(json|lock)|\.credentials\.json-\w+")
_OWN_STATE = re.compile(r"operator_history|empty-file|sandbox\.json(\.[0-9a-f]{8})?")
_NONE = re.compile(r"(?!)")
OWN_FOLDERS = {
    "trust": re.compile(r"[0-9a-f]{32}\.json|\.[0-9a-f]{32}\.json-\w+"),
    "duets": re.compile(r"[0-9a-f]{16}(\.json)?|\.[0-9a-f]{16}\.json-\w+|kept|trust"),
    "empty": _NONE,
    "workspaces/locks": re.compile(r"[0-9a-f]{32}\.lock"),
    "workspaces/removed": re.compile(r"[a-z]+_[0-9a-f]{32}\.json"),
    "workspaces/cleared": _NONE,
    "workspaces": _NONE,
    **dict.fromkeys(KINDS, _NONE),
}
"""Folders of the user's state, inner ones first, with the names in them that Podium writes beside those of projects and workspaces."""
_WORKSPACE = re.compile(r"[a-z]+_[0-9a-f]{32}")
_PROJECT = re.compile(r"[0-9a-f]{32}")


class Blocker(FrozenModel):
    """Something that keeps everything from being removed."""

    what: str
    why: str
    """The problem, and what to do."""
    busy: bool = False
    """A process is using it; else something would be lost."""


class UninstallCheck:
    """Looks, for one job, for what keeps projects from being removed. By itself it finds nothing."""

    def __init__(self, podium: Podium) -> None:
        self.podium = podium

    def running(self, *, everywhere: bool) -> Iterable[Blocker]:
        """Blockers of what runs now of the project, or of all projects."""
        return ()

    async def look_at(self, project: Path) -> tuple[Sequence[Blocker], Sequence[str]]:
        """Blockers of this project's removal, and lines on what would remain of it elsewhere."""
        return (), ()


class ProjectData(FrozenModel):
    """Data that Podium keeps of one project. The project's own files are not among it."""

    folder: str
    """Empty: nobody knows where it is."""
    id: str
    paths: tuple[str, ...] = ()
    """Paths that are removed."""
    bytes: int = 0
    workspaces: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    """Those that have not ended, each with its status."""
    remaining: tuple[str, ...] = ()
    """Paths that are not removed, each with the reason."""
    missing: bool = False
    """Its record is not in that folder: it was deleted, or its disk is not mounted."""


class SharedData(FrozenModel):
    """Settings and state that all projects of the user share."""

    folders: tuple[str, ...]
    """Folders that hold them."""
    paths: tuple[str, ...]
    bytes: int
    workspaces: tuple[str, ...] = ()
    """Those of no project that is known."""
    remaining: tuple[str, ...] = ()
    """Files that Podium did not write."""


class Inventory(FrozenModel):
    """Everything that Podium keeps, of one project or of the whole machine."""

    projects: tuple[ProjectData, ...] = ()
    shared: SharedData | None = None
    """None: only one project was looked at, or nobody wants it to be removed."""
    blockers: tuple[Blocker, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (
            self.projects or (self.shared and (self.shared.paths or self.shared.workspaces))
        )

    @property
    def confirmations(self) -> tuple[str, ...]:
        """Sentences that a person has to write, because nobody else can know that this may go."""
        runs = sum(len(project.runs) for project in self.projects)
        missing = sum(project.missing for project in self.projects)
        sentences = (
            f"abandon {counted(runs, 'run')}" if runs else "",
            f"delete keys of {counted(missing, 'missing project')}" if missing else "",
        )
        return tuple(filter(None, sentences))


class ProjectLocation(NamedTuple):
    """A project by where it is, None where that is not known, and its id, empty before it has one."""

    folder: Path | None
    id: str


Statuses = Mapping[ProjectLocation, Mapping[str, str]]
"""Status by id of the runs in each project's record."""


def find_projects(
    folders: Folders, records: Sequence[WorkspaceRecord], *, everywhere: bool
) -> list[ProjectLocation]:
    """This project first, whether anything is kept of it or not, then all others that are known.

    Raises `OSError` when one cannot be looked into; with `everywhere` off, only for this one.
    """
    state, here = folders.user_state, folders.project
    owned = [entry for kind in KINDS for entry in entries(state / kind) if _is_of_project(entry)]
    ids = sorted({entry.name for entry in owned})
    noted = [Path(path) for name in ids if (path := noted_path(state / "vaults" / name))]
    locations = [ProjectLocation(here, name) for name in _ids_in(here) or [""]]
    for folder in dict.fromkeys((*noted, *(Path(record.repository) for record in records))):
        try:
            # Behind a link would be another folder than the one that was noted.
            real = folder.is_absolute() and folder.is_dir() and folder.resolve() == folder
            if real and folder != here:
                locations += [ProjectLocation(folder, name) for name in _ids_in(folder)]
        except OSError:
            if everywhere:
                raise
    present = {location.id for location in locations}
    return [*locations, *(ProjectLocation(None, name) for name in ids if name not in present)]


def _ids_in(folder: Path) -> list[str]:
    """Ids of the project in a folder and of those whose removal was cut off."""
    state = folder / STATE_FOLDER
    cut_off = [path.name.removeprefix(REMOVED_PREFIX) for path in folder.glob(f"{REMOVED_PREFIX}*")]
    present = [project_id_in(state)] if state.is_symlink() or entries(state) else []
    cut_off = ["" if name == NO_ID else name for name in cut_off if name.isalnum()]
    return list(dict.fromkeys((*present, *cut_off)))


def statuses_in(location: ProjectLocation) -> dict[str, str]:
    """Status by id of the runs of a project; none where its record cannot be read."""
    if location.folder is None or project_id_in(location.folder / STATE_FOLDER) != location.id:
        return {}
    with suppress(OSError, PodiumError):
        return run_statuses(location.folder / STATE_FOLDER / DATABASE_NAME)
    return {}


def open_runs(statuses: Mapping[str, str]) -> tuple[str, ...]:
    """Runs that have not ended, with their status. One that this version does not know has not ended."""
    ended = {status.value for status in RunStatus if status.ended}
    return tuple(f"{run} ({status})" for run, status in statuses.items() if status not in ended)


class WorkspaceSurvey(NamedTuple):
    """Workspaces that would be removed, and those that must not be."""

    sizes: dict[ProjectLocation | None, dict[str, int]]
    """Bytes by project and id."""
    blockers: list[Blocker]


async def survey_all_workspaces(
    workspaces: Workspaces, records: Sequence[WorkspaceRecord], statuses: Statuses, user_state: Path
) -> WorkspaceSurvey:
    """Look at every workspace of the user, whatever its project."""
    owners = await _owners(workspaces, records, statuses)
    survey = await _survey(workspaces, owners, None, {""}, lambda name: True)
    settled = {name for sizes in survey.sizes.values() for name in sizes}
    folder = user_state / "workspaces"
    names = {path.name for path in entries(folder) if _WORKSPACE.fullmatch(path.name)}
    paths = [folder / name for name in sorted(names - settled)]
    paths += [path for path in entries(folder / "locks") if is_locked(path)]
    why = "another Podium process is using it; wait for it to end"
    survey.blockers.extend(Blocker(what=str(path), why=why, busy=True) for path in paths)
    return survey


async def survey_own_workspaces(
    workspaces: Workspaces,
    records: Sequence[WorkspaceRecord],
    statuses: Statuses,
    project: ProjectLocation,
) -> WorkspaceSurvey:
    """Look at those of one project, also at those that were made before it was moved."""
    owners = await _owners(workspaces, records, statuses)
    git_dir = await workspaces.repository_of(str(project.folder)) or NO_ID
    for record in records:
        if owners[record.id] is None and _was_made_in(record, project, git_dir):
            owners[record.id] = project
    own_ids = {name for name, owner in owners.items() if owner and owner.folder == project.folder}
    dirs = {git_dir, *(record.git_dir for record in records if record.id in own_ids)}
    return await _survey(workspaces, owners, project, dirs, own_ids.__contains__)


def _was_made_in(record: WorkspaceRecord, project: ProjectLocation, git_dir: str) -> bool:
    """Tell whether the repository that a workspace lost is the one of this project: it still lists the worktree."""
    from podium.git.creation import admin_folders

    if _is_dir(record.git_dir):
        return False
    moved = record.model_copy(update={"git_dir": git_dir})
    return record.repository == str(project.folder) or bool(admin_folders(moved))


async def _survey(
    workspaces: Workspaces,
    owners: Mapping[str, ProjectLocation | None],
    otherwise: ProjectLocation | None,
    git_dirs: Iterable[str],
    includes: Callable[[str], bool],
) -> WorkspaceSurvey:
    looks = [await survey_workspaces(workspaces, git_dir=git_dir) for git_dir in sorted(git_dirs)]
    listings = {
        listing.record.id: listing
        for look in looks
        for listing in look.workspaces
        if includes(listing.record.id)
    }
    leftovers = {leftover.id: leftover for look in looks for leftover in look.leftovers}
    sizes: dict[ProjectLocation | None, dict[str, int]] = {}
    measured: list[tuple[str, int]] = [(name, listing.bytes) for name, listing in listings.items()]
    measured += [(name, leftover.bytes) for name, leftover in leftovers.items()]
    for name, size in measured:
        sizes.setdefault(owners.get(name, otherwise), {})[name] = size
    unsafe = [
        Blocker(
            what=listing.record.path,
            why=f"workspace {listing.record.task}: {listing.because}",
            busy=listing.kept is WorkLocation.IN_USE,
        )
        for listing in listings.values()
        if not listing.kept.is_safe
    ]
    unreadable = [leftover for leftover in leftovers.values() if not leftover.readable]
    unsafe += [Blocker(what=leftover.places[0], why=leftover.because) for leftover in unreadable]
    return WorkspaceSurvey(sizes, unsafe)


async def _owners(
    workspaces: Workspaces, records: Sequence[WorkspaceRecord], statuses: Statuses
) -> dict[str, ProjectLocation | None]:
    git_dirs = {
        location: await workspaces.repository_of(str(location.folder))
        for location in statuses
        if location.folder is not None
    }
    return {record.id: _owner(record, git_dirs, statuses) for record in records}


def _owner(
    record: WorkspaceRecord, git_dirs: Mapping[ProjectLocation, str], statuses: Statuses
) -> ProjectLocation | None:
    """The project of a workspace. A copy of the project has the run, too, but not the repository.

    Worktrees of the user have the repository, but neither the run, nor are they in the checkout that the workspace was made from.
    """
    with_run = {location for location in git_dirs if record.run_id in statuses[location]}
    if _is_dir(record.git_dir):
        locations = [
            location
            for location, git_dir in git_dirs.items()
            if git_dir == record.git_dir
            and (location in with_run or _is_within(location.folder, record.repository))
        ]
    else:
        locations = list(with_run)

    def far(location: ProjectLocation) -> tuple[bool, bool]:
        return location not in with_run, str(location.folder) != record.repository

    return min(locations, key=far, default=None)


def _is_within(folder: Path | None, parent: str) -> bool:
    return folder is not None and folder.is_relative_to(parent)


def _is_dir(path: str) -> bool:
    return Path(path).is_dir()


def foreign_contents(state: Path) -> Iterator[Blocker]:
    """Find files in a state folder that are not part of Podium's record and would be lost with it."""
    for entry in entries(state):
        if not _OWN_IN_PROJECT.fullmatch(entry.name) and _has_files(entry):
            what = _OF_THE_USER.get(entry.name, "something that Podium did not write")
            yield Blocker(what=str(entry), why=f"holds {what}; move it away or remove it")
    errors: list[OSError] = []
    device = state.lstat().st_dev
    for folder, inner, files in os.walk(state, onerror=errors.append):
        if Path(folder).lstat().st_dev != device:
            yield Blocker(what=folder, why="is another file system; unmount it")
        if STATE_FOLDER in inner or ".git" in (*inner, *files):
            yield Blocker(what=folder, why="is another project or repository; move it away")
    for error in errors:
        why = f"cannot be read ({error.strerror}); make it readable or remove it"
        yield Blocker(what=str(error.filename), why=why)


def shared_entries(folders: Folders) -> tuple[list[Path], list[Path]]:
    """Files and folders that Podium wrote for all projects of the user, and those of others beside them."""
    config, state = folders.user_config, folders.user_state
    own, foreign = list[Path](), list[Path]()
    for name, names in OWN_FOLDERS.items():
        for entry in entries(state / name):
            if names.fullmatch(entry.name):
                own.append(entry)
            elif not _is_counted_elsewhere(name, entry):
                foreign.append(entry)
    for entry in dict.fromkeys((*entries(state), *entries(config))):
        in_state = entry.parent == state and _OWN_STATE.fullmatch(entry.name)
        if in_state or (entry.parent == config and _OWN_SETTINGS.fullmatch(entry.name)):
            own.append(entry)
        elif entry != state and not (entry.parent == state and entry.name in OWN_FOLDERS):
            foreign.append(entry)
    return own, foreign


def _is_counted_elsewhere(folder: str, entry: Path) -> bool:
    """Tell whether it belongs to a project or a workspace, or is a folder of its own in the table."""
    if folder.startswith("workspaces"):
        return bool(_WORKSPACE.fullmatch(entry.name)) or f"{folder}/{entry.name}" in OWN_FOLDERS
    return folder in KINDS and _is_of_project(entry)


def _is_of_project(entry: Path) -> bool:
    """Tell whether it is a folder that Podium named by the id of a project."""
    return bool(_PROJECT.fullmatch(entry.name)) and entry.is_dir()


def is_note_alone(paths: Sequence[Path]) -> bool:
    """Tell whether nothing but the note where a project was is left of it."""
    return [entry.name for path in paths for entry in entries(path)] in ([], [LOCATION])


def size_of(path: Path) -> int:
    """Bytes that a file, or a folder with all that is in it, takes."""
    from podium.platform.folder_tree import measure

    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    return measure(path).bytes


def entries(folder: Path) -> list[Path]:
    """Sorted contents of a folder; none where it is missing. Raises `OSError` where it cannot be read."""
    try:
        return sorted(folder.iterdir()) if not folder.is_symlink() else []
    except (FileNotFoundError, NotADirectoryError):
        return []


def _has_files(path: Path) -> bool:
    if path.is_symlink() or not path.is_dir():
        return True
    return any(
        files or any(Path(folder, name).is_symlink() for name in inner)
        for folder, inner, files in os.walk(path)
    )
