"""The kernel's ways of holding what agents start, each tried with a canary that must not sing."""

from __future__ import annotations

import asyncio
import sys

from podium.sandbox import can_make_groups
from podium.wiring.checkup.finding import Finding, bad, good, weak
from podium.wiring.podium import Podium


async def check_limits(podium: Podium) -> Finding:
    """What agents' processes and runs may take, and who holds them to it."""
    sandbox, run = podium.configuration.sandbox, podium.settings.budgets.run
    trees: dict[str, float | None] = {
        "processes": sandbox.processes,
        "MB of memory": sandbox.memory_mb,
        "MB in a file": sandbox.file_mb,
        "MB of temporary files": sandbox.temporary_mb,
    }
    runs: dict[str, float | None] = {"tokens": run.tokens, "USD": run.usd}
    held = ", ".join(f"{amount} {what}" for what, amount in trees.items() if amount)
    used = ", ".join(f"{amount:,} {what}" for what, amount in runs.items() if amount)
    grouped = await asyncio.to_thread(can_make_groups)
    how = (
        "held by cgroup v2" if grouped else "watched by the guard, for want of a writable cgroup v2"
    )
    says = f"a process tree: {held or 'none'} ({how}); a run: {used or 'none'}"
    off = [what for what, amount in {**trees, **runs}.items() if not amount]
    if off and sys.platform == "linux":
        return weak("limits", f"{says}; switched off: {', '.join(off)}", "see `podium config show`")
    return good("limits", says)


async def check_sandbox(podium: Podium) -> Finding:
    """Whether what agents start can be confined here, and how, and what a project wants and does not get."""
    found = await _confinement(podium)
    unheeded = podium.configuration.unheeded_wishes()
    if not unheeded or found.state == "fail":
        return found
    wants = ", ".join(f"{wish}, which counts only {where}" for wish, where in unheeded.items())
    mend = "put it where it counts, or take it out of podium.yaml"
    mends = f"{found.mend}; {mend}" if found.mend else mend
    return weak("sandbox", f"{found.says}; podium.yaml wants {wants}", mends)


async def _confinement(podium: Podium) -> Finding:
    sandbox = podium.configuration.sandbox
    if sandbox.kind == "none":
        origin = podium.configuration.origin_of("sandbox.kind")
        by_variable = podium.environ.get("PODIUM_SANDBOX")
        mend = "unset PODIUM_SANDBOX" if by_variable else "take `sandbox: none` out"
        return weak("sandbox", f"switched off ({origin})", mend)
    trials = await podium.confining_ways()
    works = [trial for trial in trials if trial.works]
    missed = "; ".join(
        f"{trial.mechanism.title}: {trial.why}" for trial in trials if not trial.works
    )
    if not works:
        mend = (
            "install bubblewrap and allow user namespaces, or say `sandbox: none` in your own file"
        )
        return bad("sandbox", f"nothing here can confine a program: {missed or 'Linux only'}", mend)
    says = f"{works[0].mechanism.title}; network {sandbox.network}"
    if missed and works[0] != trials[0]:
        return weak("sandbox", f"{says}, for want of better ({missed})", "install bubblewrap")
    return good("sandbox", says)
