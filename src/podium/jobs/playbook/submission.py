"""Request for a run of a playbook, from any interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from podium.app.work_request import Few, Submission
from podium.core.errors import BadInput
from podium.core.model import FrozenModel
from podium.core.work import Run
from podium.jobs.playbook.composition import job_of_files

if TYPE_CHECKING:
    from podium.app.app import Podium


class PlaybookRequest(FrozenModel):
    """Options of a playbook run. Paths are relative to the project."""

    profile: str = ""
    """The plugin's profile. Empty: the nearest one upwards from the root."""
    root: str = ""
    """Folder of the plugin. Empty: the project's."""
    agent: str = ""
    """The agent of podium.yaml that follows it."""
    inputs: Annotated[dict[str, str], Few] = Field(default_factory=dict)
    """Values of the playbook's inputs, by name."""
    dry_run: bool = False
    """Work in a temporary copy and show what would change."""


async def submit(submission: Submission) -> Run:
    queue, options = submission.queue(), submission.options
    project = submission.podium.folders.project
    job = job_of_files(
        submission.podium,
        _project_path(project, submission.text, "the playbook"),
        profile=_project_path(project, options.profile, "profile") if options.profile else None,
        root=_project_path(project, options.root, "root") if options.root else None,
        agent=options.agent,
        inputs=options.inputs,
        dry_run=options.dry_run,
    )
    return await submission.start(
        job.model_dump(mode="json"), task=job.playbook.head.name, queue=queue
    )


def _project_path(project: Path, written: str, what: str) -> Path:
    """Resolve a path of the project. Remote requests read no file outside of it."""
    if not written.strip():
        raise BadInput(f"{what} is not named; name a file of the project")
    path = project / written
    if not path.resolve().is_relative_to(project.resolve()):
        raise BadInput(f"{what} {written[:200]!r} is not beneath the project; name one that is")
    return path


def option_choices(podium: Podium) -> Mapping[str, Iterable[str]]:
    """Values that options of a request can have."""
    return {"agent": podium.settings.agents}
