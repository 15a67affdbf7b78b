"""Gate of one plugin: the project's policy, tightened by the plugin's profile."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pydantic import ValidationError

from podium.config.configuration import Configuration
from podium.config.policy_layers import build_gate
from podium.core.decisions import Budget, Call, Decision, Effect, GateContext, Quota, Tier
from podium.core.errors import BadInput
from podium.jobs.playbook.models import PROFILE_FILE, PluginProfile
from podium.jobs.playbook.run_models import PLAYBOOK
from podium.policy import Policy, PolicyLayer, compile_policy
from podium.ports import Gate

RULE = "profile-tiers"
CHECKS = "run_checks"
_ANYWHERE = "/plugin"
"""Globs of a profile begin at the root, wherever that is."""


class ProfileGate:
    """Refuses what is riskier than the profile allows; all else is as the gate beneath says."""

    def __init__(self, gate: Gate, profile: PluginProfile, of_checks: Gate) -> None:
        """`of_checks` judges the profile's own commands, which go through all of the plugin."""
        self._gate = gate
        self._tiers = profile.allowed_tiers
        self._of_checks = of_checks

    def decide(self, call: Call, context: GateContext) -> Decision:
        gate = self._of_checks if call.tool == CHECKS else self._gate
        decision = gate.decide(call, context)
        if decision.effect is Effect.DENY or str(decision.tier) in self._tiers:
            return decision
        allowed = ", ".join(self._tiers) or "none"
        reason = f"this call is of tier {decision.tier}, and the plugin's profile allows: {allowed}"
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
    """The gate for calls about this plugin. Raises `BadInput` for globs that mean nothing.

    Not `closed`: without the profile's places, for the commands of its own people, which go through all of it.
    """
    whole = build_gate(configuration)
    layers = (places_layer(profile), _commits_layer())
    gate = build_gate(configuration, layers) if closed else whole
    return ProfileGate(gate, profile, whole)


def places_layer(profile: PluginProfile) -> PolicyLayer:
    """A layer that closes the profile's paths. It comes from a repository: it only tightens."""
    zones = {
        "profile-forbidden": {"paths": _folders(profile.forbidden_paths), "kind": "forbidden"},
        "profile-read-only": {"paths": _folders(profile.read_only_paths), "kind": "read-only"},
    }
    given = {name: zone for name, zone in zones.items() if zone["paths"]}
    try:
        policy = Policy.model_validate({"zones": given})
    except ValidationError as error:
        faults = "; ".join(str(fault["msg"]) for fault in error.errors())
        raise BadInput(f"{PROFILE_FILE}: forbidden_paths, read_only_paths: {faults}") from None
    return PolicyLayer(origin="project", policy=policy)


def _folders(globs: Sequence[str]) -> tuple[str, ...]:
    """All that is in a folder is the folder: so nothing new comes into it either."""
    return tuple(re.sub(r"(?<=[^/])(/\*{1,2})+$", "", glob.rstrip("/")) or glob for glob in globs)


def _commits_layer() -> PolicyLayer:
    """In a person's own folder a commit takes along what that person was at, on the branch they stand on."""
    rule = {
        "name": "playbook-commits",
        "tool": "git_commit",
        "roles": (PLAYBOOK,),
        "decision": Effect.ASK,
        "tier": Tier.T2,
        "why": "it goes on the branch you stand on",
    }
    return PolicyLayer(origin="user", policy=Policy.model_validate({"rules": (rule,)}))


def off_limits(profile: PluginProfile) -> Callable[[str], bool]:
    """Whether a path, from the root on, is one that the profile lets nobody change."""
    paths = (*profile.forbidden_paths, *profile.read_only_paths)
    closed = profile.model_copy(update={"forbidden_paths": paths, "read_only_paths": ()})
    gate = compile_policy([places_layer(closed)])
    return lambda path: gate.passed_over(f"{_ANYWHERE}/{path}", _ANYWHERE)
