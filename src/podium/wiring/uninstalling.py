"""What Podium keeps on this machine, project by project, and its removal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from podium.domain.errors import NotPossibleNow, PodiumError
from podium.domain.model import Noun
from podium.usecases import collect_workspaces, needed_by_runs, see_workers
from podium.wiring.configuration import load_readable
from podium.wiring.folders import Folders, project_id_in, registered_projects
from podium.wiring.podium import Podium, open_podium

_NO_REPOSITORY = "none"
_OWN_SETTINGS = {"config.yaml", "credentials.json"}
_OWN_STATE = {
    *("duets", "empty", "grounds", "homes", "projects", "trust", "vaults", "workspaces"),
    *("operator_history", "sandbox.json"),
}


class KeptProject(Noun):
    """What Podium keeps of one project. The project's own files and its podium.yaml are not among it."""

    id: str
    folder: str
    paths: tuple[str, ...]
    bytes: int
    blocked: str = ""
    """Why it cannot be removed now, and what to do; empty when it can."""


class KeptHome(Noun):
    """Settings and state of the user, which all projects share."""

    paths: tuple[str, ...]
    bytes: int
    blocked: str = ""
    """Why it cannot be removed, and what to do; empty when it can."""


class Keeps(Noun):
    """Everything that Podium keeps for this user."""

    projects: tuple[KeptProject, ...]
    home: KeptHome


async def find_what_is_kept(folders: Folders, environ: Mapping[str, str]) -> Keeps:
    """Look at every project that Podium was used in, and at the user's own folders. Changes nothing."""
    known = registered_projects(folders.user_state)
    here = project_id_in(folders.state)
    if here:
        known[here] = folders.project
    projects = [await _look_at(each, folder, folders, environ) for each, folder in known.items()]
    return Keeps(
        projects=tuple(sorted(projects, key=lambda each: each.folder)), home=_look_at_home(folders)
    )


async def remove_project(
    kept: KeptProject, folders: Folders, environ: Mapping[str, str]
) -> KeptProject:
    """Remove what is kept of a project, after looking at it once more.

    Raises `NotPossibleNow` when somebody works in it by now, or a workspace holds work that is nowhere else.
    """
    seen = await _look_at(kept.id, Path(kept.folder), folders, environ)
    if seen.blocked:
        raise NotPossibleNow(seen.blocked)
    if _is_there(seen.id, Path(seen.folder)):
        async with _opened(Path(seen.folder), environ) as podium:
            await _collect(podium, dry_run=False)
    for path in seen.paths:
        remove_folder(Path(path))
    folders.registration(seen.id).unlink(missing_ok=True)
    return seen


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that is in it; a link is not followed."""
    try:
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise NotPossibleNow(
            f"{str(folder)!r} could not be removed whole: {error.strerror or error}; remove the rest yourself"
        ) from None


def _look_at_home(folders: Folders) -> KeptHome:
    config, state = folders.user_config, folders.user_state
    own = {
        config: {*_OWN_SETTINGS, *([state.name] if state.parent == config else [])},
        state: _OWN_STATE,
    }
    paths = _existing([config] if state.is_relative_to(config) else [config, state])
    strange = [
        str(entry)
        for folder, names in own.items()
        if folder.is_dir()
        for entry in sorted(folder.iterdir())
        if entry.name not in names and not (folder == config and entry == state)
    ]
    return KeptHome(
        paths=tuple(map(str, paths)),
        bytes=sum(map(_size, paths)),
        blocked=f"{strange[0]!r} is not Podium's; move it away, or remove the rest yourself"
        if strange
        else "",
    )


async def _look_at(
    name: str, folder: Path, folders: Folders, environ: Mapping[str, str]
) -> KeptProject:
    beside = [folders.user_state / kind / name for kind in ("vaults", "homes", "grounds")]
    there = _is_there(name, folder)
    state = Folders(folder, folders.user_config, folders.user_state).state
    paths = _existing([*([state] if there else []), *beside])
    blocked = await _why_blocked(folder, environ) if there else ""
    return KeptProject(
        id=name,
        folder=str(folder),
        paths=tuple(map(str, paths)),
        bytes=sum(map(_size, paths)),
        blocked=blocked,
    )


def _is_there(name: str, folder: Path) -> bool:
    """Whether the project is still where it was. Another one may have taken its place."""
    state = folder / ".podium"
    return not state.is_symlink() and project_id_in(state) == name


def _opened(folder: Path, environ: Mapping[str, str]) -> AbstractAsyncContextManager[Podium]:
    configuration, _ = load_readable(environ, project=folder)
    return open_podium(configuration, environ)


async def _why_blocked(folder: Path, environ: Mapping[str, str]) -> str:
    try:
        async with _opened(folder, environ) as podium:
            if podium.has_record:
                seen = await see_workers(await podium.store(), podium.engine)
                for worker in seen.workers:
                    if worker.alive:
                        process = f" (process {worker.beat.pid})" if worker.beat else ""
                        return f"{worker.id}{process} is at work in it; end that first"
            for stays in await _collect(podium, dry_run=True):
                return f"workspace {stays}; `podium workspaces list` there shows it"
    except PodiumError as error:
        return str(error)
    return ""


async def _collect(podium: Podium, *, dry_run: bool) -> Sequence[str]:
    """Clear the workspaces away whose work is safe. Returns those that stay, and why."""
    scope = await podium.workspaces.repository_of(str(podium.folders.project)) or _NO_REPOSITORY
    store = await podium.store() if podium.has_record else None
    needed = needed_by_runs(store, str(podium.folders.project), podium.clock, podium.engine)
    done = await collect_workspaces(
        podium.workspaces, podium.clock, needed=needed, dry_run=dry_run, git_dir=scope
    )
    return [f"{each.task or each.id}: {each.because}" for each in done.removals if not each.removed]


def _existing(paths: Sequence[Path]) -> list[Path]:
    return [path for path in paths if os.path.lexists(path)]


def _size(folder: Path) -> int:
    """Bytes of the files below it; what cannot be read counts as nothing."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 - many files
            except OSError:
                continue
    return total
