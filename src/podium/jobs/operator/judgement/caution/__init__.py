"""A last look at a reading that would act: whatever is in doubt becomes a question."""

from __future__ import annotations

from podium.jobs.operator.judgement.caution.doubts import NO_MORE, as_question, look_again
from podium.jobs.operator.judgement.caution.message_tokens import ParsedMessage

__all__ = ["NO_MORE", "ParsedMessage", "as_question", "look_again"]
