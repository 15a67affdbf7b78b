"""A program of somebody else's: joins by pyzmq alone, and answers each prompt with its words turned round.

    python plain_dealer.py ENDPOINT FOLDER [stuck]

FOLDER gets a line in `done` for each turn that it does. `stuck`: it takes turns and never answers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import zmq


def main(endpoint: str, folder: str, *ways: str) -> None:
    line = zmq.Context().socket(zmq.DEALER)
    line.connect(endpoint)

    def say(**output: Any) -> None:
        line.send_string(json.dumps(output))

    join = {"kind": "join", "pair": "main", "side": "PLANNER", "name": "plain"}
    say(**join)
    known: set[str] = set()
    while True:
        if not line.poll(100):
            say(kind="beat")
            continue
        payload = json.loads(line.recv())
        if payload["kind"] == "who":
            say(**join)
        if payload["kind"] == "asked":
            say(kind="taken", id=payload["id"])
            if payload["id"] not in known:
                known.add(payload["id"])
                with (Path(folder) / "done").open("a") as done:
                    done.write(payload["id"] + "\n")
                say(kind="told", id=payload["id"], words="half way")
            if "stuck" not in ways:
                say(kind="answered", id=payload["id"], text=payload["prompt"][::-1])


if __name__ == "__main__":
    main(*sys.argv[1:])
