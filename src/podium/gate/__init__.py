"""Judges every call: policy rules, zones, git and shell firewall, tiers, budgets, quotas, approvals."""

from podium.gate.compiling import compile_policy, find_faults
from podium.gate.exec_rules import exec_rules
from podium.gate.policy import Policy, PolicyLayer, QuotaSpec, Rule, ZoneSpec, default_policy
from podium.gate.programs import Kind
from podium.gate.refusing import PolicyFault
from podium.gate.rule_gate import RuleGate
from podium.gate.shell import split_command

__all__ = [
    "Kind",
    "Policy",
    "PolicyFault",
    "PolicyLayer",
    "QuotaSpec",
    "Rule",
    "RuleGate",
    "ZoneSpec",
    "compile_policy",
    "default_policy",
    "exec_rules",
    "find_faults",
    "split_command",
]
