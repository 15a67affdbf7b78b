"""Checkup of this machine: each check tries the thing itself."""

from podium.app.checkup.check import CheckFinding, State
from podium.app.checkup.examination import examine, fix_what_is_safe

__all__ = ["CheckFinding", "State", "examine", "fix_what_is_safe"]
