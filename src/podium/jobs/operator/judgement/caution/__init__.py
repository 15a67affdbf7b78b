"""A last look at a reading that would act: whatever is in doubt becomes a question."""

from __future__ import annotations

from podium.jobs.operator.judgement.caution.doubts import look_again

__all__ = ["look_again"]
