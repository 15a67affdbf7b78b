"""Plays one turn of a script. Runs alone, as `python -IS player.py`, with the part on stdin.

What it says goes to stdout, a JSON object a line; the last one is the reply. Calls go to
Podium over the socket named in PODIUM_DOOR.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time


def main() -> None:
    part = json.load(sys.stdin)
    said: list[str] = []
    log: list[dict[str, object]] = []
    acts = part["acts"]
    for number in range(part["first_act"], len(acts)):
        entry = play(acts[number], said)
        if entry is not None:
            log.append({"act": number, **entry})
        if entry is not None and entry.get("decision") == "ask":
            finish(said, log, next_act=number)
            return
    if part["reply"]:
        said = [part["reply"]]
    finish(said, log, next_act=None)


def play(act: dict[str, object], said: list[str]) -> dict[str, object] | None:
    """Do one act. Gives what became of a call."""
    match act:
        case {"say": str(words)}:
            said.append(words)
        case {"call": str(tool)}:
            answer = ask({"op": "perform", "tool": tool, "arguments": act.get("with") or {}})
            return {"tool": tool, **answer}
        case {"dump_environment": True}:
            said.extend(f"{name}={value}" for name, value in sorted(os.environ.items()))
        case {"sleep_seconds": float(seconds) | int(seconds)}:
            time.sleep(seconds)
        case {"hang": True}:
            while True:
                signal.pause()
        case {"crash": int(code)}:
            os._exit(code)
        case {"flood_bytes": int(size)}:
            flood(size)
        case {"ignore_sigterm": True}:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case {"lie": True}:
            sys.stdout.write('{"reply": tru')
            sys.stdout.flush()
            os._exit(0)
        case {"leave_child": True}:
            subprocess.Popen(["sleep", "3600"], start_new_session=True)
    return None


def flood(size: int) -> None:
    line = b"x" * 65535 + b"\n"
    for _ in range(size // len(line) + 1):
        sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def ask(message: dict[str, object]) -> dict[str, object]:
    """Put one message to the door and give its answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.connect(os.environ["PODIUM_DOOR"])
        line.sendall(json.dumps({"token": os.environ["PODIUM_DOOR_TOKEN"], **message}).encode())
        line.sendall(b"\n")
        answer = json.loads(line.makefile("rb").readline() or b'{"decision": "deny"}')
    return dict(answer)


def finish(said: list[str], log: list[dict[str, object]], next_act: int | None) -> None:
    reply = {"reply": "\n".join(said), "log": log, "next_act": next_act}
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
