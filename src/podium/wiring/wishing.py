"""A workspace for a task, as the settings want workspaces to be."""

from __future__ import annotations

from collections.abc import Sequence

from podium.domain.workspaces import SetUp, WorkspaceWish
from podium.wiring.configuration import Configuration


def workspace_wish(
    configuration: Configuration,
    closed: Sequence[str],
    task: str,
    *,
    base: str = "HEAD",
    branch: str = "",
    run_id: str = "",
) -> WorkspaceWish:
    """What to make for this task; `closed` are the places that the policy's zones keep.

    Raises `NotPossibleNow` for set-up that nobody has trusted.
    """
    settings, sandbox = configuration.workspaces, configuration.sandbox
    project = configuration.folders.project
    return WorkspaceWish(
        task=task,
        repository=str(project),
        base=base,
        branch=branch,
        folder=str(project / settings.folder / task) if settings.folder else "",
        forbidden=tuple(dict.fromkeys((*settings.forbidden, *closed))),
        set_up=SetUp(
            copy_files=settings.copy_files,
            ports=settings.ports,
            after_create=tuple(_shell(line) for line in settings.after_create),
            ready=_shell(settings.ready) if settings.ready else (),
            seconds=settings.seconds,
            network=sandbox.network or "none",
            hosts=sandbox.hosts,
        ),
        run_id=run_id,
    )


def _shell(line: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", line)
