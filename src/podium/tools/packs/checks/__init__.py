"""The checks of a pack's registry. Each looks at one thing, in all tools, and stops at nothing."""

from podium.tools.packs.checks import code, rules, schemas, tools
from podium.tools.packs.checks.registry_check import RegistryCheck

CHECKS = (
    tools.check_names,
    schemas.check,
    tools.check_relations,
    tools.check_skills,
    tools.check_proofs,
    rules.check,
    code.check,
)

__all__ = ["CHECKS", "RegistryCheck"]
