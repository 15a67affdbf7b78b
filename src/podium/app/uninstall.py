"""Removal of what Podium keeps on this machine.

Whatever could be lost is looked for in everything that is to be removed before anything is, and once more while it is locked.

A killed removal leaves something that the next one finishes. First go workspaces, each in steps of its own. Then the state folder of a
project is renamed in one step, from which on there is no project any more; homes and keys follow, unless they stay, then the renamed
folder, and last the note where the project was. What all projects share goes after the last of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from podium.app.inventory import (
    KINDS,
    NO_ID,
    OWN_FOLDERS,
    REMOVED_PREFIX,
    Blocker,
    Inventory,
    ProjectData,
    ProjectLocation,
    SharedData,
    UninstallCheck,
    entries,
    find_projects,
    foreign_contents,
    is_note_alone,
    open_runs,
    shared_entries,
    size_of,
    statuses_in,
    survey_all_workspaces,
    survey_own_workspaces,
)
from podium.app.local_sockets import socket_folder
from podium.config.folders import (
    STATE_FOLDER,
    Folders,
    project_id_in,
    record_server,
    refuse_foreign_state,
)
from podium.config.project_identity import LOCATION, is_copy, noted_path
from podium.core.errors import PodiumError
from podium.core.job import all_jobs, load_part
from podium.core.workspaces import WorkLocation
from podium.platform.file_lock import is_locked, take_folder_lock
from podium.store import DATABASE_NAME, run_statuses

if TYPE_CHECKING:
    from podium.app.app import Podium


COMMAND = "podium uninstall"
_LOCK_SECONDS = 2.0


class RemovalOutcome(NamedTuple):
    """Result of a removal."""

    removed: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    """Not empty: nothing was removed but workspaces whose work is safe."""


class _Contents(NamedTuple):
    """Paths of one project, and blockers of their removal."""

    paths: list[Path]
    remaining: list[str]
    blockers: list[Blocker | None]


class Uninstaller:
    """Lists and removes what Podium keeps for this user.

    PODIUM_DATABASE_URL has no say here: whether a record is on a server is noted in each project's folder, and what is there stays there.
    """

    def __init__(self, podium: Podium) -> None:
        self._podium = podium
        self._folders = podium.folders
        self._locks: ExitStack | None = None
        self._checks: list[UninstallCheck] = []
        self._unloaded: list[Blocker] = []
        for job in all_jobs():
            if kind := load_part(job, "uninstall"):
                self._checks.append(kind(podium))
            elif job.uninstall:
                why = "its check for `podium uninstall` cannot be loaded; repair or remove the package"
                self._unloaded.append(Blocker(what=f"job {job.name}", why=why))

    async def survey(self, *, everywhere: bool) -> Inventory:
        """Look at the project, or at all of them and what they share. Podium's folders stay as they are."""
        try:
            links = tuple(self._links(everywhere=everywhere))
            return Inventory(blockers=links) if links else await self._survey(everywhere=everywhere)
        except FileNotFoundError as error:
            gone = f"was removed or renamed meanwhile; run `{COMMAND}` again"
            return Inventory(blockers=(Blocker(what=str(error.filename), why=gone, busy=True),))
        except OSError as error:
            why = f"cannot be read ({error.strerror}); make it readable or move it away"
            return Inventory(blockers=(Blocker(what=str(error.filename), why=why),))

    async def remove(self, chosen: Inventory, *, everywhere: bool) -> RemovalOutcome:
        """Remove what was chosen of a survey, after a second one with everything locked.

        Nothing is removed when that finds something in the way, or a project that changed. Raises `PodiumError` when something cannot be
        removed; asked again it goes on from there.
        """
        with ExitStack() as self._locks:
            try:
                inventory = await self.survey(everywhere=everywhere)
                return await self._remove(chosen, inventory)
            finally:
                self._locks = None

    async def _remove(self, chosen: Inventory, inventory: Inventory) -> RemovalOutcome:
        listed = {(project.folder, project.id): project for project in chosen.projects}
        current = {(project.folder, project.id): project for project in inventory.projects}
        projects = [project for key, project in current.items() if key in listed]
        changed = [
            project
            for key, project in current.items()
            if key in listed and not _same(project, listed[key])
        ]
        why = f"it changed meanwhile; run `{COMMAND}` again"
        blockers = (
            *inventory.blockers,
            *(Blocker(what=project.folder, why=why) for project in changed),
        )
        if blockers:
            return RemovalOutcome(blockers=blockers)
        is_all = chosen.shared is not None and len(projects) == len(inventory.projects)
        shared = inventory.shared if is_all else None
        parts: list[ProjectData | SharedData] = [*projects, *([shared] if shared else [])]
        removed: list[str] = []
        await self._podium.end_orphans()
        for name in (name for part in parts for name in part.workspaces):
            if blocker := await self._remove_workspace(name):
                return RemovalOutcome(removed=tuple(removed), blockers=(blocker,))
            removed.append(name)
        for project in projects:
            self._remove_project(project)
            removed += project.paths
        if shared is not None:
            self._remove_shared()
            removed += shared.paths
        remaining = tuple(line for part in parts for line in part.remaining)
        return RemovalOutcome(removed=tuple(removed), remaining=remaining)

    async def _remove_workspace(self, name: str) -> Blocker | None:
        """Remove it if its work is still safe; that is judged once more, with the workspace locked."""
        workspaces = self._podium.workspaces
        leftovers = {leftover.id for leftover in await workspaces.leftovers()}
        removal = await (workspaces.clear if name in leftovers else workspaces.remove)(name)
        if removal.removed:
            return None
        what = f"workspace {removal.task or name}"
        return Blocker(what=what, why=removal.because, busy=removal.kept is WorkLocation.IN_USE)

    def _remove_project(self, project: ProjectData) -> None:
        paths = [Path(path) for path in project.paths]
        state = Path(project.folder) / STATE_FOLDER
        key_dir = self._folders.user_state / "vaults" / (project.id or NO_ID)
        # The name tells whoever finishes it whether the keys go, too.
        away = _away(Path(project.folder), project.id if key_dir in paths else "")
        if state in paths:
            _remove(away)
            state.rename(away)
        for path in paths:
            if path not in (state, away, key_dir):
                _remove(path)
        if key_dir in paths:
            for entry in entries(key_dir):
                if entry.name != LOCATION:
                    _remove(entry)
        if state in paths or away in paths:
            _remove(away)
        if key_dir in paths:
            _remove(key_dir)

    def _remove_shared(self) -> None:
        own, _ = shared_entries(self._folders)
        for path in own:
            _remove(path)
        state = self._folders.user_state
        sockets = socket_folder(self._folders.project, self._podium.environ).parent
        own_folders = [state / name for name in OWN_FOLDERS]
        for folder in (*own_folders, state, self._folders.user_config, sockets):
            with suppress(OSError):  # others have files there
                folder.rmdir()

    async def _survey(self, *, everywhere: bool) -> Inventory:
        workspaces, here = self._podium.workspaces, self._folders.project
        records = workspaces.existing()
        for record in records:
            if here.is_relative_to(record.path):
                why = f"is workspace {record.task} of {record.repository}; run `{COMMAND}` there"
                return Inventory(blockers=(Blocker(what=str(here), why=why),))
        locations = find_projects(self._folders, records, everywhere=everywhere)
        statuses = {location: statuses_in(location) for location in locations}
        if everywhere:
            user_state = self._folders.user_state
            own = await survey_all_workspaces(workspaces, records, statuses, user_state)
        else:
            locations = [
                location
                for location in locations
                if location.folder == here or self._was_here(location)
            ]
            own = await survey_own_workspaces(workspaces, records, statuses, locations[0])
        projects = []
        blockers: list[Blocker] = [*self._unloaded, *own.blockers]
        for check in self._checks:
            blockers += check.running(everywhere=everywhere)
        for location in locations:
            contents = await self._look_at(location, everywhere=everywhere)
            sizes = own.sizes.pop(location, {})
            project = ProjectData(
                folder=str(location.folder or noted_path(self._key_dir(location))),
                id=location.id,
                paths=tuple(map(str, contents.paths)),
                bytes=sum(map(size_of, contents.paths)) + sum(sizes.values()),
                workspaces=tuple(sizes),
                runs=open_runs(statuses[location]),
                remaining=tuple(contents.remaining),
                missing=location.folder is None and not is_note_alone(contents.paths),
            )
            if project.paths or project.workspaces or project.remaining:
                projects.append(project)
            blockers += filter(None, contents.blockers)
        rest = {name: size for sizes in own.sizes.values() for name, size in sizes.items()}
        shared = self._look_at_shared(rest) if everywhere else None
        unique = tuple(dict.fromkeys(blockers))
        return Inventory(projects=tuple(projects), shared=shared, blockers=unique)

    def _was_here(self, location: ProjectLocation) -> bool:
        """Tell whether it is what is left of a record that was in this folder: by its note, or the last that a killed removal left."""
        if location.folder is not None:
            return False
        noted_folder = noted_path(self._key_dir(location))
        is_last = not noted_folder and is_note_alone(self._own_folders(location))
        return is_last or noted_folder == str(self._folders.project)

    def _own_folders(self, location: ProjectLocation) -> list[Path]:
        """Its folders in the user's state."""
        paths = [self._folders.user_state / kind / location.id for kind in KINDS if location.id]
        return [path for path in paths if path.exists()]

    def _links(self, *, everywhere: bool) -> Iterator[Blocker]:
        """Links where Podium makes folders: what is behind them belongs to somebody else."""
        state = self._folders.user_state
        config = [self._folders.user_config] if everywhere else []
        inner = [entry for kind in (*KINDS, "workspaces") for entry in entries(state / kind)]
        for path in dict.fromkeys(
            (*config, state, *(state / name for name in OWN_FOLDERS), *inner)
        ):
            if path.is_symlink():
                yield Blocker(what=str(path), why="is a link, which is not followed; move it away")

    def _look_at_shared(self, workspaces: Mapping[str, int]) -> SharedData:
        own, foreign = shared_entries(self._folders)
        folders = dict.fromkeys((self._folders.user_config, self._folders.user_state))
        return SharedData(
            folders=tuple(str(folder) for folder in folders if folder.is_dir()),
            paths=tuple(map(str, own)),
            bytes=sum(map(size_of, own)) + sum(workspaces.values()),
            workspaces=tuple(workspaces),
            remaining=tuple(f"{path}: not written by Podium" for path in foreign),
        )

    async def _look_at(self, location: ProjectLocation, *, everywhere: bool) -> _Contents:
        noted_folder = noted_path(self._key_dir(location)) if location.id else ""
        contents = (
            self._look_at_rest(location, noted_folder, everywhere=everywhere)
            if location.folder is None
            else self._look_at_project(location, location.folder, noted_folder)
        )
        folder = location.folder or Path(noted_folder)
        if folder.is_absolute():
            for check in self._checks:
                blockers, remaining = await check.look_at(folder)
                contents.blockers.extend(blockers)
                contents.remaining.extend(remaining)
        for parent in dict.fromkeys(path.parent for path in contents.paths):
            if not os.access(parent, os.W_OK | os.X_OK):
                why = "cannot be written; give yourself write permission (ls -ld, chmod)"
                contents.blockers.append(Blocker(what=str(parent), why=why))
        return contents

    def _look_at_rest(
        self, location: ProjectLocation, noted_folder: str, *, everywhere: bool
    ) -> _Contents:
        """Look at what is left where a record is not in its folder any more, or nobody knows where that is."""
        paths = self._own_folders(location)
        if not (everywhere or is_note_alone(paths)):
            why = f"keys of an earlier record in this folder; `{COMMAND} --all` removes them"
            return _Contents([], [f"{path}: {why}" for path in paths], [])
        return _Contents(
            paths, [], [self._lock(path, noted_folder or location.id) for path in paths]
        )

    def _look_at_project(
        self, location: ProjectLocation, folder: Path, noted_folder: str
    ) -> _Contents:
        own_folders = self._own_folders(location)
        own = Folders(folder, self._folders.user_config, self._folders.user_state)
        is_there = own.state.exists() and project_id_in(own.state) == location.id
        away, sockets = _away(folder, location.id), self._sockets(folder)
        paths = [*([own.state] if is_there else []), *([away] if away.exists() else []), *sockets]
        contents = _Contents(paths, [], [])
        if is_there:
            contents.blockers.extend(self._state_blockers(own))
        if away.exists():
            contents.blockers.append(self._lock(away, str(folder)))
        server = record_server(own) if is_there else ""
        if server:
            contents.remaining.append(
                f"{server}: the record; drop the schemas `podium` and `dbos` there if nobody uses it"
            )
            contents.remaining.extend(
                f"{path}: needed for the record on {server}" for path in own_folders
            )
        elif noted_folder == str(folder):
            contents.paths.extend(own_folders)
            contents.blockers.extend(self._lock(path, noted_folder) for path in own_folders)
        elif is_there and is_copy(own):
            contents.remaining.extend(
                f"{path}: of {noted_folder}, which this is a copy of" for path in own_folders
            )
        elif is_there and own_folders:
            why = (
                f"it was moved or copied from {noted_folder or 'another folder'}, and its keys are not registered as its "
                f"own yet; run `podium runs` in it, then `{COMMAND}` again"
            )
            contents.blockers.append(Blocker(what=str(folder), why=why))
        elif is_there and location.id and folder != self._folders.project:
            contents.remaining.append(f"{own.state}: its keys are elsewhere; run `{COMMAND}` in it")
            contents.paths.clear()
        return contents

    def _sockets(self, project: Path) -> list[Path]:
        """The folder of the project's sockets, where there is one that is this user's."""
        folder = socket_folder(project, self._podium.environ)
        with suppress(OSError):
            if folder.parent.lstat().st_uid == os.geteuid() and folder.is_dir():
                return [folder]
        return []

    def _key_dir(self, location: ProjectLocation) -> Path:
        return self._folders.user_state / "vaults" / (location.id or NO_ID)

    def _state_blockers(self, own: Folders) -> list[Blocker | None]:
        """Blockers of the removal of a project's state folder."""
        state, project = own.state, str(own.project)
        try:
            refuse_foreign_state(state)
            run_statuses(state / DATABASE_NAME)
        except PodiumError as error:
            return [Blocker(what=str(state), why=str(error))]
        if state.lstat().st_uid != os.geteuid():
            return [Blocker(what=str(state), why="belongs to another user, who can remove it")]
        locks = [
            *state.glob("workers/*.lock"),
            state / "sense" / "lock",
            state / "notices" / "lock",
        ]
        locks += [lock for folder in self._sockets(own.project) for lock in folder.glob("*.lock")]
        busy = _busy(project) if any(map(is_locked, locks)) else self._lock(state, project)
        nested = [
            Blocker(
                what=str(home),
                why=f"overlaps with {str(state)!r}; move it elsewhere and set PODIUM_HOME to its new path",
            )
            for home in {own.user_config, own.user_state}
            if home.is_relative_to(state) or state.is_relative_to(home)
        ]
        return [busy, *nested, *foreign_contents(state)]

    def _lock(self, folder: Path, project: str) -> Blocker | None:
        """Lock the folder until the end of a removal or, when only looking, for a moment."""
        try:
            handle = take_folder_lock(
                folder, shared=False, seconds=_LOCK_SECONDS if self._locks else 0.0
            )
        except BlockingIOError:
            return _busy(project)
        except OSError:
            return None  # a file system without locks, or a file that stands in its location
        if self._locks is None:
            os.close(handle)
        else:
            self._locks.callback(os.close, handle)
        return None


def _away(folder: Path, name: str) -> Path:
    """Name of a project's state folder while it is being removed."""
    return folder / f"{REMOVED_PREFIX}{name or NO_ID}"


def _same(project: ProjectData, listed: ProjectData) -> bool:
    """Tell whether the same would be removed. Logs grow, so sizes do not count."""
    return (
        project.model_copy(update={"bytes": listed.bytes, "remaining": listed.remaining}) == listed
    )


def _busy(project: str) -> Blocker:
    why = (
        "a Podium process is using it (serve, worker, sense, mcp, a run or another uninstall); stop it or wait for it "
        "to end (`podium workers` there lists those that host runs)"
    )
    return Blocker(what=project, why=why, busy=True)


def _remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all that is in it. Where nothing is, nothing happens."""
    from podium.platform.folder_tree import clear_away

    if not path.is_symlink() and path.is_dir():
        clear_away(path, COMMAND)
    else:
        path.unlink(missing_ok=True)
