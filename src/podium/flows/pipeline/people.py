"""Where only a person knows how to go on."""

from __future__ import annotations

from podium.flows.pipeline.desk import Desk


async def ask_a_person(desk: Desk, name: str, reason: str) -> None:
    """Stop until somebody has looked and resumed the run; what they say goes into the next prompt."""
    desk.trip.stuck += 1
    how = (
        f'; look at it, then `podium resume {desk.trip.run_id} --note "…"` goes on with your words'
    )
    signal = await desk.ctx.ask_person(name, f"{reason}{how}", index=desk.trip.stuck)
    said = signal.payload
    if isinstance(said, str) and said.strip():
        desk.trip.guidance.append(said.strip())
