"""What the tool `finish` means for the reply of an agent whose calls Podium performs."""

from __future__ import annotations

from podium.domain.asking import Finish, Reply, Turn


def finished(reply: Reply, turn: Turn, done: Finish | None) -> Reply:
    """The reply, with what the agent said by `finish`. None: it did not use it.

    Where a payload is wanted and the tool was given none, the agent's own words may hold it.
    """
    if done is None:
        return reply
    if turn.contract is None:
        return reply.model_copy(update={"text": done.summary})
    if not done.payload:
        return reply if reply.text.strip() else reply.model_copy(update={"text": done.summary})
    told = {"text": done.summary, "payload": done.payload, "found": "native"}
    return reply.model_copy(update=told)
