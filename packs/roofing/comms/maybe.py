"""Report about a message that may have been sent."""

from __future__ import annotations

from podium.core.errors import OutcomeUnknown


class MaybeSent(OutcomeUnknown):
    """The message was handed over and the other side's word for it never came.

    `reference` is what to look for there. It must not be sent again before somebody looked.
    """

    def __init__(self, what: str, reason: str, reference: str) -> None:
        super().__init__(
            f"{what} was handed over and may have been sent, but {reason}; look for {reference} "
            "there before sending it again"
        )
        self.reference = reference
