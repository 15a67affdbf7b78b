"""Plays one turn of a script. Runs alone, as `python -IS script_player.py`, with the part on stdin.

What it says goes to stdout, a JSON object a line: `say`, `did` and `usage` on the way, `reply` or
`fail` at the end. Calls go to Podium over the socket named in PODIUM_DOOR; what it does with its
own hands it asks for there first.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

BAD_BYTE = "\udcff"
"""Stands for the byte 0xff in what it says: no UTF-8 has it."""
MAX_OUTPUT = 2_000

Answer = dict[str, object]


class ScriptPart:
    """A turn being played."""

    def __init__(self, part: dict[str, object]) -> None:
        self.acts: list[dict[str, object]] = part["acts"]  # type: ignore[assignment]
        self.last_reply = str(part["reply"])
        self.texts: list[str] = []
        self.payload: object = None
        self.cut_after: int | None = None

    def play_from(self, first: int) -> None:
        for number in range(first, len(self.acts)):
            did = self.play(self.acts[number], f"act-{number}")
            if did is not None:
                emit({"did": {"act": number, **did}})
            if did is not None and did.get("decision") == "ask":
                # Told to wait for a person: the turn ends here, and goes on with this act.
                self.finish(next_act=number)
                return
            if did is not None and says_it_is_done(did):
                break
        if self.last_reply:
            self.texts = [self.last_reply]
        self.finish(next_act=None)

    def play(self, act: dict[str, object], ref: str) -> Answer | None:
        """Do one act. Gives what became of the use of a tool."""
        match act:
            case {"say": str(text)}:
                self.say(text)
            case {"call": str(tool)}:
                asked = {"tool": tool, "arguments": act.get("with") or {}}
                return {"tool": tool, **ask({"op": "perform", **asked})}
            case {"write": _} | {"run": _} | {"commit": _}:
                return use_own_hands(act, ref)
            case {"payload": payload}:
                self.payload = payload
            case {"usage": usage}:
                emit({"usage": usage})
            case {"dump_environment": True}:
                self.say("\n".join(f"{name}={value}" for name, value in sorted(os.environ.items())))
            case {"bad_bytes": True}:
                self.say(f"caf{BAD_BYTE} {BAD_BYTE}{BAD_BYTE}")
            case {"truncate": int(size)}:
                self.cut_after = size
            case _:
                misbehave(act)
        return None

    def say(self, text: str) -> None:
        self.texts.append(text)
        emit({"say": text})

    def finish(self, next_act: int | None) -> None:
        text = "\n".join(self.texts)
        if self.payload is not None:
            with_needs = f"```json\n{json.dumps(self.payload, indent=2, ensure_ascii=False)}\n```"
            text = f"{text}\n\n{with_needs}" if text else with_needs
        emit({"reply": text, "next_act": next_act}, cut_after=self.cut_after)


def says_it_is_done(did: Answer) -> bool:
    """Return whether this was the tool `finish`, which ends a turn."""
    match did:
        case {"tool": "finish", "decision": "allow", "outcome": {"ok": True}}:
            return True
    return False


def misbehave(act: dict[str, object]) -> None:
    match act:
        case {"sleep_seconds": float(seconds) | int(seconds)}:
            time.sleep(seconds)
        case {"hang": True}:
            while True:
                signal.pause()
        case {"crash": int(code)}:
            os._exit(code)
        case {"fail": failure}:
            emit({"fail": failure})
            os._exit(1)
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
        case _:
            sys.exit(f"unknown act: {', '.join(sorted(act))}")


def flood(size: int) -> None:
    line = b"x" * 65535 + b"\n"
    for _ in range(size // len(line) + 1):
        sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def use_own_hands(act: dict[str, object], ref: str) -> Answer:
    """Ask, act, settle. Denied or told to wait, nothing is done."""
    tool, arguments = own_tool(act)
    if act.get("ignore_the_gate"):
        ok, result = act_itself(tool, arguments)
        return {"tool": tool, "decision": "not asked", "ok": ok, "result": result}
    answer = ask({"op": "request", "tool": tool, "arguments": arguments, "ref": ref})
    if answer.get("decision") != "allow":
        return {"tool": tool, **answer}
    ok, result = act_itself(tool, arguments)
    error = "" if ok else str(result.get("error") or f"exit code {result.get('exit_code')}")
    ask({"op": "settle", "ref": ref, "ok": ok, "result": result, "error": error})
    return {"tool": tool, "decision": "allow", "ok": ok, "result": result}


def own_tool(act: dict[str, object]) -> tuple[str, dict[str, object]]:
    """The registered tool that an act of its own is, as it is asked for."""
    match act:
        case {"write": dict(file)}:
            return "write_file", {"path": file["path"], "content": file.get("content", "")}
        case {"commit": str(message)}:
            line = f"git add -A && git commit -q -m {shlex.quote(message)}"
            return "run_command", {"command": line}
        case {"run": line}:
            return "run_command", {"command": line}
    raise ValueError(f"no tool performs the act {', '.join(sorted(act))}")


def act_itself(tool: str, arguments: dict[str, object]) -> tuple[bool, dict[str, object]]:
    """Act, and return whether it succeeded, and the result."""
    try:
        if tool == "write_file":
            return True, write(str(arguments["path"]), str(arguments["content"]))
        return run(str(arguments["command"]))
    except (OSError, ValueError) as error:
        return False, {"error": str(error)}


def write(path: str, content: str) -> dict[str, object]:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode()
    target.write_bytes(data)
    return {"path": path, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def run(line: str) -> tuple[bool, dict[str, object]]:
    ended = subprocess.run(
        ["/bin/sh", "-c", line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output = ended.stdout.decode(errors="replace")
    proof = hashlib.sha256(ended.stdout).hexdigest()
    result = {
        "exit_code": ended.returncode,
        "output_sha256": proof,
        "output": output[:MAX_OUTPUT],
    }
    return ended.returncode == 0, result


def ask(message: dict[str, object]) -> Answer:
    """Put one message to the door and give its answer. Without a door the answer is no."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.connect(os.environ["PODIUM_DOOR"])
            token = os.environ["PODIUM_DOOR_TOKEN"]
            line.sendall(json.dumps({"token": token, **message}).encode() + b"\n")
            return dict(json.loads(line.makefile("rb").readline()))
    except (OSError, KeyError, ValueError) as error:
        return {"decision": "deny", "say": f"Podium cannot be reached ({error!r}); denied"}


def emit(record: dict[str, object], cut_after: int | None = None) -> None:
    line = json.dumps(record).encode().replace(b"\\udcff", b"\xff") + b"\n"
    sys.stdout.buffer.write(line if cut_after is None else line[:cut_after])
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    part = json.load(sys.stdin)
    ScriptPart(part).play_from(part["first_act"])
