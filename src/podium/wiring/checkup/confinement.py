"""The kernel's ways of holding what agents start, each tried with a canary that must not sing."""

from __future__ import annotations

from podium.wiring.checkup.finding import Finding, bad, good, weak
from podium.wiring.podium import Podium


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
