"""The project's checks for whoever asks: on the commit that is checked out, in a workspace of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.domain.errors import NotPossibleNow
from podium.domain.model import Noun
from podium.flows.pipeline import CheckResult
from podium.wiring.pipeline_spec import pipeline_spec
from podium.wiring.pipelining import check_runner, named_checks

if TYPE_CHECKING:
    from podium.ports import Workspace
    from podium.wiring.podium import Podium


class ChecksReport(Noun):
    """The results, and what they are about."""

    commit: str
    results: tuple[CheckResult, ...]
    not_tested: tuple[str, ...] = ()
    """Tracked files of the checkout that are not as committed: the checks ran without these changes."""

    @property
    def passed(self) -> bool:
        return all(result.passed for result in self.results)


async def run_project_checks(podium: Podium, run_id: str) -> ChecksReport:
    """Run the checks, confined as those of the pipeline are. The workspace is removed afterwards.

    Raises `BadInput` where there is no repository, `NotPossibleNow` where there is nothing to run.
    """
    from podium.flows.pipeline.check_detection import detect_in
    from podium.workspaces.git.looking import look_at

    named = named_checks(podium)
    look = await look_at(podium.repository_git, str(podium.folders.project))
    workspace = await _workspace(podium, run_id, look.head)
    run_check, seconds = check_runner(podium), pipeline_spec(podium.configuration).check_seconds
    try:
        checks = (await detect_in(workspace, run_check)).checks if named is None else named
        if not checks:
            raise NotPossibleNow(
                "no checks were found; name them under `checks:` in podium.yaml, such as [pytest -q]"
            )
        results = [await run_check(workspace, check, seconds) for check in checks]
        await workspace.reset(look.head, "what the checks left")
    finally:
        await podium.workspaces.remove(workspace.record.id)
    return ChecksReport(commit=look.head, results=tuple(results), not_tested=look.changed)


async def _workspace(podium: Podium, run_id: str, commit: str) -> Workspace:
    """The one that an earlier attempt of the same run made, else a new one."""
    for record in podium.workspaces.known():
        if record.run_id == run_id:
            return await podium.workspaces.open(record.id)
    wish = podium.workspace_wish(f"checks-{run_id[-8:]}", base=commit, run_id=run_id)
    return await podium.workspaces.create(wish)
