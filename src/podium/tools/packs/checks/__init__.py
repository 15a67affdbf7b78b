"""The checks of a pack's registry. Each looks at one thing, in all tools, and stops at nothing."""

from podium.tools.packs.checks import code, naming, proofs, relations, schemas, skills
from podium.tools.packs.checks.registry_check import RegistryCheck

CHECKS = (naming.check, schemas.check, relations.check, skills.check, proofs.check, code.check)

__all__ = ["CHECKS", "RegistryCheck"]
