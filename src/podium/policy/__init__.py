"""Judges every call: policy rules, zones, git and shell firewall, tiers, budgets, quotas, approvals."""

from podium.policy.compiler import compile_policy, find_problems
from podium.policy.git_tables import exec_rules
from podium.policy.policy import (
    Policy,
    PolicyLayer,
    PolicyRule,
    QuotaSpec,
    ZoneSpec,
    default_policy,
)
from podium.policy.programs import CommandKind
from podium.policy.refusal import InvalidPolicy
from podium.policy.rule_gate import RuleGate
from podium.policy.shell import split_command

__all__ = [
    "CommandKind",
    "InvalidPolicy",
    "Policy",
    "PolicyLayer",
    "PolicyRule",
    "QuotaSpec",
    "RuleGate",
    "ZoneSpec",
    "compile_policy",
    "default_policy",
    "exec_rules",
    "find_problems",
    "split_command",
]
