"""Examination of the machine: all checks, run concurrently, and fixes that need no person's decision."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress

from podium.app.app import Podium
from podium.app.checkup.check import CheckFinding, bad, good, weak
from podium.app.checkup.machine import (
    check_any,
    check_approvers,
    check_checks,
    check_configured,
    check_git,
    check_hooks,
    check_jobs,
    check_kinds,
    check_limits,
    check_python,
    check_repository,
    check_sandbox,
    check_tmux,
    check_unused_agent,
    confining_ways,
    unused_kinds,
)
from podium.app.checkup.record import (
    check_chains,
    check_database,
    check_folder,
    check_heads,
    check_receipt_key,
    check_space,
    check_traces,
)
from podium.app.workspaces import survey_workspaces
from podium.config.configuration import ENVIRONMENT_VARIABLES
from podium.core.errors import PodiumError
from podium.platform import is_wide, tighten


async def examine(podium: Podium, environ: Mapping[str, str]) -> list[CheckFinding]:
    """Try everything. A check that breaks is itself a finding; none of them raises."""
    launcher = podium.launcher
    ways = asyncio.ensure_future(confining_ways(podium))
    checks: dict[str, Awaitable[CheckFinding]] = {
        "python": check_python(),
        "jobs": check_jobs(),
        "git": check_git(launcher),
        "tmux": check_tmux(launcher),
        "sandbox": check_sandbox(podium, ways),
        "limits": check_limits(podium, ways),
        "repository": check_repository(podium),
        "checks": check_checks(podium),
        "folder": check_folder(podium),
        "database": check_database(podium),
        "space": check_space(podium),
        "receipts": check_receipt_key(podium),
        "heads": check_heads(podium),
        "chains": check_chains(podium),
        "traces": check_traces(podium),
        "hooks": check_hooks(podium),
        **{kind: check_unused_agent(podium, kind) for kind in unused_kinds(podium)},
    }
    configured = {
        f"agent {name}": check_configured(podium, name) for name in sorted(podium.settings.agents)
    }
    findings = await asyncio.gather(
        *(_whatever(name, check) for name, check in {**checks, **configured}.items())
    )
    agents = findings[len(checks) :]
    settings_findings = (check_any(podium, agents), check_kinds(podium), check_approvers(podium))
    return [check_variables(environ), *findings, *settings_findings]


def check_variables(environ: Mapping[str, str]) -> CheckFinding:
    """A mistyped variable does nothing, and nobody notices."""
    strange = sorted(
        name for name in environ if name.startswith("PODIUM_") and name not in ENVIRONMENT_VARIABLES
    )
    if strange:
        names = ", ".join(sorted(ENVIRONMENT_VARIABLES))
        return weak("variables", f"unknown: {', '.join(strange)}", f"known variables: {names}")
    return good("variables", "no unknown PODIUM_* variable is set")


async def _whatever(name: str, check: Awaitable[CheckFinding]) -> CheckFinding:
    try:
        return await check
    except Exception as error:
        return bad(
            name, f"could not be checked: {type(error).__name__}: {error}", "see the error above"
        )


_NO_REPOSITORY = "none"


async def fix_what_is_safe(podium: Podium) -> list[str]:
    """Close folders to others, end processes of killed Podiums and clear away what they left.

    Returns what was done, a sentence each. What cannot be done stays as it is, and `podium workspaces list` shows it.
    """
    done = []
    folders = podium.folders
    for folder in (folders.state, folders.user_state, *folders.private):
        if is_wide(folder):
            tighten(folder)
            if not is_wide(folder):
                done.append(f"removed the permissions of other users on {folder}")
    if podium.record_loss or not folders.state.is_dir():
        return done
    await podium.end_orphans()
    repository = await podium.workspaces.repository_of(str(folders.project)) or _NO_REPOSITORY
    overview = await survey_workspaces(podium.workspaces, git_dir=repository)
    for leftover in overview.leftovers:
        with suppress(PodiumError):
            removal = await podium.workspaces.clear(leftover.id)
            done.append(f"removed leftover {leftover.id}: {removal.because}")
    return done
