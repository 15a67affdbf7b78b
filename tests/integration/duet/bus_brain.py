"""A side of a duet in a process of its own: joins the bus and answers as the fake TUIs do.

python bus_brain.py ENDPOINT SIDE
"""

from __future__ import annotations

import asyncio
import sys

from podium.agents.bus import Asked, BusPeer
from podium.agents.bus.peer import Join, Notify
from podium.core.turns import MessageBlock, block_of
from podium.testing.fake_tuis.messages import requested_block


async def answer(asked: Asked, notify: Notify) -> str:
    wanted = requested_block(asked.prompt)
    if wanted is None:
        return "READY"
    if wanted.allows_text:
        return "It is all done."
    to, kind = wanted.forms[0]
    notify(f"making a {kind}")
    return block_of(MessageBlock(to=to, type=kind, id=wanted.id, body="1. look\n2. mend"))


if __name__ == "__main__":
    _, endpoint, side = sys.argv
    join = Join.model_validate({"side": side, "name": f"brain-{side}"})
    asyncio.run(BusPeer(endpoint, join).serve(answer))
