"""Workspace of a task as the settings want it, and the files in it that need approval."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel

from podium.config.configuration import Configuration
from podium.config.flow_options import flow_options, options_models
from podium.core.job import all_jobs, load
from podium.core.steering_files import SteeringFile, steering_files
from podium.core.workspaces import SetupSpec, WorkspaceSpec


def workspace_spec(
    configuration: Configuration,
    closed: Sequence[str],
    task: str,
    *,
    base: str = "HEAD",
    branch: str = "",
    run_id: str = "",
) -> WorkspaceSpec:
    """Build the spec of a task's workspace; `closed` are the paths that the policy's zones protect.

    Raises `NotPossibleNow` for set-up that nobody has trusted.
    """
    settings, sandbox = configuration.workspaces, configuration.sandbox
    project = configuration.folders.project
    return WorkspaceSpec(
        task=task,
        repository=str(project),
        base=base,
        branch=branch,
        folder=str(project / settings.folder / task) if settings.folder else "",
        forbidden=tuple(dict.fromkeys((*settings.forbidden, *closed))),
        set_up=SetupSpec(
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


def guarded_paths(configuration: Configuration, repository: str) -> list[str]:
    """From the top of the checkout on. In a repository of another project, what comes with Podium counts too.

    Raises `ConfigInvalid` for options of a flow that are wrong: what they name is not known then.
    """
    top = os.path.realpath(repository)
    project = os.path.realpath(configuration.folders.project)
    shapes = options_models()
    options = [
        shape.model_validate(flow_options(configuration, flow)) for flow, shape in shapes.items()
    ]
    names = _named_by([configuration.settings, *options], project)
    if os.path.commonpath((top, project)) != top:
        names += _named_by([shape() for shape in shapes.values()], top)
        return [name for name in map(posixpath.normpath, names) if _is_inside(name)]
    # By its name, and where links lead now.
    paths = [os.path.normpath(Path(project, name)) for name in names]
    paths += list(map(os.path.realpath, paths))
    return [inner for inner in (os.path.relpath(path, top) for path in paths) if _is_inside(inner)]


def _named_by(settings: Iterable[BaseModel], folder: str) -> list[str]:
    def is_meant(path: str, steering_file: SteeringFile) -> bool:
        return not (steering_file.files_only and Path(folder, path).is_dir())

    named = [pair for model in settings for pair in steering_files(model)]
    of_jobs = [path for job in all_jobs() if job.guarded_files for path in load(job.guarded_files)]
    return [*(path for path, steering_file in named if is_meant(path, steering_file)), *of_jobs]


def _is_inside(path: str) -> bool:
    return path not in (".", "..") and not path.startswith(("../", "/"))
