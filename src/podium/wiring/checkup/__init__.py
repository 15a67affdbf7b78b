"""What is really usable on this machine: each check tries the thing itself."""

from podium.wiring.checkup.examine import examine
from podium.wiring.checkup.finding import Finding, State
from podium.wiring.checkup.fixes import fix_what_is_safe

__all__ = ["Finding", "State", "examine", "fix_what_is_safe"]
