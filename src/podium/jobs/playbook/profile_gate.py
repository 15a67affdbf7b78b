"""Gate of one plugin: the project's policy, tightened by the plugin's profile."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pydantic import ValidationError

from podium.config.configuration import Configuration
from podium.config.policy_layers import build_gate
from podium.core.decisions import Budget, Call, Decision, Effect, GateContext, Quota, Tier
from podium.core.errors import BadInput
from podium.jobs.playbook.models import PLAYBOOK, PROFILE_FILE, PluginProfile
from podium.policy import Policy, PolicyLayer, compile_policy
from podium.ports import Gate

RULE = "profile-tiers"
CHECKS = "run_checks"
_ANYWHERE = "/plugin"
"""Stand-in root: globs of a profile are relative to the root."""


class ProfileGate:
    """Denies calls above the profile's tiers; delegates everything else to the wrapped gate."""

    def __init__(self, gate: Gate, profile: PluginProfile, of_checks: Gate) -> None:
        """`of_checks` decides about the profile's own commands, which read all of the plugin."""
        self._gate = gate
        self._tiers = profile.allowed_tiers
        self._of_checks = of_checks

    def decide(self, call: Call, context: GateContext) -> Decision:
        gate = self._of_checks if call.tool == CHECKS else self._gate
        decision = gate.decide(call, context)
        if decision.effect is Effect.DENY or str(decision.tier) in self._tiers:
            return decision
        allowed = ", ".join(self._tiers) or "none"
        reason = (
            f"the call has tier {decision.tier}, and the plugin's profile allows only: {allowed}"
        )
        return decision.model_copy(
            update={"effect": Effect.DENY, "rule": RULE, "reason": reason, "approvers": ()}
        )

    def quotas_for(self, call: Call, context: GateContext) -> tuple[Quota, ...]:
        return self._gate.quotas_for(call, context)

    def passed_over(self, real_path: str, root: str) -> bool:
        return self._gate.passed_over(real_path, root)

    @property
    def budgets(self) -> tuple[Budget, ...]:
        return self._gate.budgets

    @property
    def approval_seconds(self) -> float:
        return self._gate.approval_seconds


def profile_gate(
    configuration: Configuration, profile: PluginProfile, *, closed: bool = True
) -> ProfileGate:
    """Build the gate for calls about this plugin. Raises `BadInput` for invalid globs.

    Not `closed`: without the profile's protected paths, for its own commands, which read all of the plugin.
    """
    whole = build_gate(configuration)
    layers = (paths_layer(profile), _commits_layer())
    gate = build_gate(configuration, layers) if closed else whole
    return ProfileGate(gate, profile, whole)


def paths_layer(profile: PluginProfile) -> PolicyLayer:
    """Build the layer that protects the profile's paths. It comes from a repository: it only tightens."""
    zones = {
        "profile-forbidden": {"paths": _folders(profile.forbidden_paths), "kind": "forbidden"},
        "profile-read-only": {"paths": _folders(profile.read_only_paths), "kind": "read-only"},
    }
    closed_zones = {name: zone for name, zone in zones.items() if zone["paths"]}
    try:
        policy = Policy.model_validate({"zones": closed_zones})
    except ValidationError as error:
        problems = "; ".join(str(problem["msg"]) for problem in error.errors())
        raise BadInput(f"{PROFILE_FILE}: forbidden_paths, read_only_paths: {problems}") from None
    return PolicyLayer(origin="project", policy=policy)


def _folders(globs: Sequence[str]) -> tuple[str, ...]:
    """Turn globs of a folder's contents into the folder, which also protects it from new files."""
    return tuple(re.sub(r"(?<=[^/])(/\*{1,2})+$", "", glob.rstrip("/")) or glob for glob in globs)


def _commits_layer() -> PolicyLayer:
    """Build the layer that asks before commits: in a person's own folder they include that person's work, on their branch."""
    rule = {
        "name": "playbook-commits",
        "tool": "git_commit",
        "roles": (PLAYBOOK,),
        "decision": Effect.ASK,
        "tier": Tier.T2,
        "why": "it goes on the current branch",
    }
    return PolicyLayer(origin="user", policy=Policy.model_validate({"rules": (rule,)}))


def off_limits(profile: PluginProfile) -> Callable[[str], bool]:
    """Build a predicate for paths, relative to the root, that the profile protects from changes."""
    paths = (*profile.forbidden_paths, *profile.read_only_paths)
    closed = profile.model_copy(update={"forbidden_paths": paths, "read_only_paths": ()})
    gate = compile_policy([paths_layer(closed)])
    return lambda path: gate.passed_over(f"{_ANYWHERE}/{path}", _ANYWHERE)
