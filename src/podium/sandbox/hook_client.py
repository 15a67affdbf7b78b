"""Ask Podium whether a CLI may use a tool: the command of its hooks.

Runs alone as `python -IS hook_client.py`: the hook's JSON on stdin, PODIUM_DOOR and
PODIUM_DOOR_TOKEN in the environment, PODIUM_DOOR_DEADLINE for the seconds it may take in all.

Allowed is exit 0 with the decision on stdout. Everything else is a denial: exit 2, the reason on
stderr and nothing on stdout. That is the one form all CLIs take for a no; they go on as if
nothing had been said after exit 1, after other output, and after their own timeout.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

BEFORE = ("PreToolUse", "BeforeTool")
AFTER = ("PostToolUse", "PostToolUseFailure", "AfterTool")
DEFAULT_DEADLINE_SECONDS = 5.0
LONGEST_ANSWER_BYTES = 1_000_000
LONGEST_RESULT_CHARACTERS = 100_000
LONGEST_REASON_CHARACTERS = 4_000


class Denied(Exception):
    """No. The text is what the agent is told."""


def main() -> None:
    try:
        signal.signal(signal.SIGALRM, _out_of_time)
        signal.setitimer(signal.ITIMER_REAL, _deadline_seconds())
        event = _read_event()
        answer = _ask(_message_for(event))
        signal.setitimer(signal.ITIMER_REAL, 0)
        if answer.get("decision") != "allow":
            raise Denied(str(answer.get("say") or "denied without a reason"))
        _write_all(1, json.dumps(_output_for(event, answer)))
    except BaseException as error:
        _deny(error)
    os._exit(0)


def _deny(error: BaseException) -> None:
    try:
        said = str(error) if isinstance(error, Denied) else f"the hook failed ({error!r}); denied"
        # Begins with our name: a reason that happened to be JSON would be read as an answer.
        _write_all(2, f"podium: Permission Denied: {_plain(said)[:LONGEST_REASON_CHARACTERS]}\n")
    finally:
        os._exit(2)


def _out_of_time(*_: object) -> None:
    # Leaves from here: an error raised at any moment might be raised outside of all handlers.
    _deny(Denied("Podium did not answer in time; denied, try again later"))


def _deadline_seconds() -> float:
    try:
        seconds = float(os.environ["PODIUM_DOOR_DEADLINE"])
    except (KeyError, ValueError):
        return DEFAULT_DEADLINE_SECONDS
    return seconds if 0 < seconds < float("inf") else DEFAULT_DEADLINE_SECONDS


def _read_event() -> dict[str, object]:
    event = json.loads(sys.stdin.buffer.read())
    if not isinstance(event, dict):
        raise Denied("the hook's input is not a JSON object; denied")
    return event


def _message_for(event: dict[str, object]) -> dict[str, object]:
    name = event.get("hook_event_name")
    tool, arguments = event.get("tool_name"), event.get("tool_input")
    if name not in (*BEFORE, *AFTER):
        raise Denied(f"this hook is for the use of tools, not for {name!r}; denied")
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        raise Denied("the hook's input names no tool and arguments; denied")
    message = {"tool": tool, "arguments": arguments, "ref": str(event.get("tool_use_id") or "")}
    if name in BEFORE:
        return {"op": "request", **message}
    error = _error_in(event)
    return {"op": "settle", **message, "ok": not error, "error": error, "result": _result_in(event)}


def _error_in(event: dict[str, object]) -> str:
    response = event.get("tool_response")
    found = event.get("error")
    if isinstance(response, dict):
        found = found or response.get("error") or response.get("is_error")
        found = found or (response.get("success") is False and "not successful")
    if event.get("hook_event_name") == "PostToolUseFailure":
        found = found or "failed"
    return _plain(str(found))[:LONGEST_REASON_CHARACTERS] if found else ""


def _result_in(event: dict[str, object]) -> object:
    response = event.get("tool_response")
    length = len(json.dumps(response))
    return response if length <= LONGEST_RESULT_CHARACTERS else {"left_out_characters": length}


def _ask(message: dict[str, object]) -> dict[str, object]:
    line = json.dumps({"token": os.environ.get("PODIUM_DOOR_TOKEN", ""), **message})
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        try:
            door.connect(os.environ.get("PODIUM_DOOR", ""))
            door.sendall(line.encode() + b"\n")
            heard = _read_line(door)
        except OSError as error:
            raise Denied(f"Podium is not there ({error.strerror or error}); denied") from None
    answer = json.loads(heard)
    if not isinstance(answer, dict):
        raise Denied("Podium's answer is not a JSON object; denied")
    return answer


def _read_line(door: socket.socket) -> bytes:
    heard = b""
    while not heard.endswith(b"\n"):
        chunk = door.recv(65536)
        if not chunk or len(heard) > LONGEST_ANSWER_BYTES:
            raise Denied("Podium's answer was cut off or too long; denied")
        heard += chunk
    return heard


def _output_for(event: dict[str, object], answer: dict[str, object]) -> dict[str, object]:
    name = event["hook_event_name"]
    if name in AFTER:
        return {}
    reason = str(answer.get("reason") or "allowed by policy")
    decision = {"permissionDecision": "allow", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": name, **decision}}


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text).strip()


def _write_all(fd: int, text: str) -> None:
    data = text.encode(errors="replace")
    while data:
        data = data[os.write(fd, data) :]


if __name__ == "__main__":
    main()
