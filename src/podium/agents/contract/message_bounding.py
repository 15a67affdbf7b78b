"""Long answers with messages in them, cut so that no message loses its middle."""

from __future__ import annotations

from podium.agents.contract.bounding import bounded
from podium.agents.contract.message_reading import MOST_BODY
from podium.agents.contract.messages import read_messages
from podium.domain.errors import ReplyInvalid
from podium.domain.messages import Awaited

MOST_ANSWER = MOST_BODY + 200_000
"""Characters that are kept: the largest message with words around it, and what one record holds."""


def bounded_answer(text: str, awaited: Awaited) -> str:
    """At most so many characters, with the awaited message whole. Words alone are cut in their middle.

    Raises `ReplyInvalid` where there is no room for the message.
    """
    if len(text) <= MOST_ANSWER:
        return text
    meant = awaited.found_in(read_messages(text))
    if meant is None and awaited.or_words and awaited.id not in text:
        return bounded(text)
    end = text[-MOST_ANSWER:].partition("\n")[2]
    # What is cut at its beginning may quote another that is whole.
    if meant is None or awaited.found_in(read_messages(end)) != meant:
        raise ReplyInvalid(
            f"{awaited.sender} answered with {len(text):,} characters, and no whole message is in the last {MOST_ANSWER:,}, "
            "which is all that is read; have it write what is long into a file and name that in its message"
        )
    return end
