"""A plain line program: reads lines from a terminal that echoes them, and knows nothing of screens."""

from __future__ import annotations

import json
import sys


def main(record: str) -> None:
    print("ready", flush=True)  # noqa: T201 — it is what it does
    for line in sys.stdin:
        with open(record, "a") as file:  # noqa: PTH123 — pathlib loads slowly
            file.write(json.dumps(line.rstrip("\n")) + "\n")
