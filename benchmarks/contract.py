"""Cost of finding the payload at the end of a reply, which stays linear in the worst cases."""

from __future__ import annotations

import time
from contextlib import suppress

from benchmarks.figures import Figure, median
from podium.agents.contract import NotAnAnswer, read_block, read_payload
from podium.testing.replies import CONTRACTS

ROUNDS = 3
CHARACTERS = 50_000_000

PAYLOAD = '\n{"verdict": "APPROVE", "feedback": "fine"}\n'
BLOCK = '\n[[POLI:MSG {"id": "n1"}]]\nfine\n[[/POLI:MSG]]\n'
FLOODS = {
    "prose": "The plan is sound, and the tests cover it. ",
    "opening braces": "{",
    "empty objects": "{}",
    "quotes": '"',
    "backslashes": "\\",
    "fences": "```json\n{\n",
    "objects that do not fit": '{"verdict": "NO"}\n',
    "half thoughts": "<think ",
    "half escapes": "\x1b]0;x",
    "almost tags": '[[POLI:MSG {"id": ',
}


async def measure() -> list[Figure]:
    figures = []
    for name, piece in FLOODS.items():
        figures.append(_figure(f"payload after {name}", piece, PAYLOAD))
        if name == "almost tags":
            figures.append(_figure(f"block after {name}", piece, BLOCK))
    return figures


def _figure(name: str, piece: str, ending: str) -> Figure:
    """The time for a text against that for half of it: linear is two."""
    whole = piece * (CHARACTERS // len(piece)) + ending
    half = piece * (CHARACTERS // 2 // len(piece)) + ending
    seconds: dict[str, list[float]] = {"whole": [], "half": []}
    for _ in range(ROUNDS):
        seconds["half"].append(_timed(half))
        seconds["whole"].append(_timed(whole))
    return Figure(
        name,
        median(seconds["whole"]) * 1000,
        "ms",
        median(seconds["half"]) * 1000,
        "half as much",
        most_ratio=2.2,
    )


def _timed(text: str) -> float:
    began = time.perf_counter()
    with suppress(NotAnAnswer):
        if text.endswith(BLOCK):
            read_block(text, "POLI:MSG", nonce="n1")
        else:
            read_payload(text, CONTRACTS["verdict"])
    return time.perf_counter() - began
