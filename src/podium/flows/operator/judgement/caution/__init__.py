"""A last look at a reading that would act: whatever is in doubt becomes a question."""

from __future__ import annotations

from podium.flows.operator.judgement.caution.looking import look_again

__all__ = ["look_again"]
