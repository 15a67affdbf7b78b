"""Examination of the machine: all checks, run concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping

from podium.app.app import Podium
from podium.app.checkup.agents import (
    check_agent,
    check_any,
    check_configured,
    check_hooks,
    check_kinds,
    other_programs,
)
from podium.app.checkup.check import Finding, bad, good, weak
from podium.app.checkup.machine import (
    check_approvers,
    check_checks,
    check_git,
    check_jobs,
    check_limits,
    check_python,
    check_sandbox,
    check_tmux,
    confining_ways,
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
from podium.config.configuration import ENVIRONMENT_VARIABLES


async def examine(podium: Podium, environ: Mapping[str, str]) -> list[Finding]:
    """Try everything. A check that breaks is itself a finding; none of them raises."""
    launcher = podium.launcher
    ways = asyncio.ensure_future(confining_ways(podium))
    checks: dict[str, Awaitable[Finding]] = {
        "python": check_python(),
        "jobs": check_jobs(),
        "git": check_git(launcher),
        "tmux": check_tmux(launcher),
        "sandbox": check_sandbox(podium, ways),
        "limits": check_limits(podium, ways),
        "checks": check_checks(podium),
        "folder": check_folder(podium),
        "database": check_database(podium),
        "space": check_space(podium),
        "receipts": check_receipt_key(podium),
        "heads": check_heads(podium),
        "chains": check_chains(podium),
        "traces": check_traces(podium),
        "hooks": check_hooks(podium),
        **{name: check_agent(launcher, name) for name in other_programs(podium)},
        **{
            f"agent {name}": check_configured(podium, name)
            for name in sorted(podium.settings.agents)
        },
    }
    findings = await asyncio.gather(*(_whatever(name, check) for name, check in checks.items()))
    settings_findings = (check_any(podium), check_kinds(podium), check_approvers(podium))
    return [check_variables(environ), *findings, *settings_findings]


def check_variables(environ: Mapping[str, str]) -> Finding:
    """A mistyped variable does nothing, and nobody notices."""
    strange = sorted(
        name for name in environ if name.startswith("PODIUM_") and name not in ENVIRONMENT_VARIABLES
    )
    if strange:
        names = ", ".join(sorted(ENVIRONMENT_VARIABLES))
        return weak("variables", f"{', '.join(strange)} mean nothing", f"known are {names}")
    return good("variables", "no unknown PODIUM_* variable is set")


async def _whatever(name: str, check: Awaitable[Finding]) -> Finding:
    try:
        return await check
    except Exception as error:
        return bad(name, f"could not be checked: {type(error).__name__}: {error}", "see the words")
