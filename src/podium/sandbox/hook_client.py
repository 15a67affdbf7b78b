"""Ask Podium whether a CLI may use a tool: the command of its hooks.

Runs alone, started by `isolated.py`: the hook's JSON on stdin, PODIUM_DOOR and
PODIUM_DOOR_TOKEN in the environment, PODIUM_DOOR_DEADLINE for the seconds it may take in all. For a
CLI that outlives its turns PODIUM_DOOR_FILE names a JSON file instead, in which the two stand while
a turn is on.

Allowed is exit 0 with the decision on stdout. Everything else is a denial: exit 2, the reason on
stderr and nothing on stdout. That is the one form all CLIs take for a no; they go on as if
nothing had been said after exit 1, after other output, and after their own timeout.

With the argument `deny-as-json` the door's own no is a decision on stdout too. Only for a CLI that reads it and runs
nothing without an allow: others take exit 0 for one. Claude Code shows the model the whole hook command after exit 2.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # what a type checker takes for True; `typing` itself loads too slowly
if TYPE_CHECKING:
    import signal
    import socket
else:
    # What `signal` and `socket` add to these would make each call 7 ms slower.
    import _signal as signal
    import _socket as socket


# JSON by the C half of `json` alone. The other half loads `re` and `enum`, which takes longer than the interpreter itself
# to start. That C half is no promise of Python's, so where it is not as known the whole of `json` is loaded.


class _ScanState:
    """The state that the scanner asks for. Numbers that JSON does not have are read as Python does."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


try:
    import _json

    _scan: _json.make_scanner | None = _json.make_scanner(_ScanState)  # type: ignore[arg-type]  # anything with these names
    _write: _json.make_encoder | None = _json.make_encoder(
        {}, _refuse, _json.encode_basestring_ascii, None, ": ", ", ", False, False, True
    )
except (ImportError, AttributeError, TypeError):
    _scan = _write = None


def read_json(text: bytes) -> object:
    """The value this is. Raises `ValueError` when it is not exactly one, in UTF-8."""
    if _scan is None:
        import json

        return json.loads(text)
    decoded = text.decode().strip(" \t\n\r")
    try:
        value, end = _scan(decoded, 0)
    except (StopIteration, SystemError):
        # The second, for some of what is broken, where the other half is not loaded.
        raise ValueError("not valid JSON") from None
    if end != len(decoded):
        raise ValueError(f"not valid JSON from character {end} on")
    return value


def write_json(value: object) -> str:
    """The value in one line of ASCII. Raises `TypeError` for what JSON does not have."""
    if _write is None:
        import json

        return json.dumps(value)
    return "".join(_write(value, 0))


DENY_AS_JSON = "deny-as-json"
BEFORE = ("PreToolUse", "BeforeTool")
DEFAULT_DEADLINE_SECONDS = 5.0
MAX_ANSWER_BYTES = 1_000_000
MAX_REASON_CHARACTERS = 4_000
MAX_DOOR_FILE_BYTES = 10_000


class HookDenied(Exception):
    """No. The text is what the agent is told."""

    label = "Permission Denied: "


class InvalidHookCall(HookDenied):
    """No call at all: nothing forbids what was meant."""

    label = "Error: "


class HookApprovalPending(HookDenied):
    """Not yet: a person is asked. The text says so."""

    label = ""


def main(denial_form: str = "") -> None:
    try:
        signal.signal(signal.SIGALRM, _out_of_time)
        signal.setitimer(signal.ITIMER_REAL, _deadline_seconds())
        event = _read_event()
        answer = ask_door(_message_for(event))
        signal.setitimer(signal.ITIMER_REAL, 0)
        decision, reason = "allow", str(answer.get("reason") or "allowed by policy")
        if answer.get("decision") != "allow":
            denied = _refusal(answer)
            if denial_form != DENY_AS_JSON:
                raise denied
            decision, reason = "deny", _reason(denied)
        _write_all(1, write_json(_output_for(event, decision, reason)))
    except BaseException as error:
        _deny(error)
    os._exit(0)


def _refusal(answer: dict[str, object]) -> HookDenied:
    kind = HookApprovalPending if answer.get("decision") == "ask" else HookDenied
    if answer.get("mistake"):
        kind = InvalidHookCall
    return kind(str(answer.get("say") or "denied without a reason"))


def _deny(error: BaseException) -> None:
    try:
        if not isinstance(error, HookDenied):
            error = HookDenied(f"the hook failed ({error!r}); denied")
        # Begins with our name: a reason that happened to be JSON would be read as an answer.
        _write_all(2, f"podium: {_reason(error)}\n")
    finally:
        os._exit(2)


def _reason(error: HookDenied) -> str:
    return f"{error.label}{_plain(str(error))[:MAX_REASON_CHARACTERS]}"


def _out_of_time(*_: object) -> None:
    # Leaves from here: an error raised at any moment might be raised outside of all handlers.
    _deny(HookDenied("Podium did not answer in time; denied, try again later"))


def _deadline_seconds() -> float:
    try:
        seconds = float(os.environ["PODIUM_DOOR_DEADLINE"])
    except (KeyError, ValueError):
        return DEFAULT_DEADLINE_SECONDS
    return seconds if 0 < seconds < float("inf") else DEFAULT_DEADLINE_SECONDS


def _read_event() -> dict[str, object]:
    event = read_json(sys.stdin.buffer.read())
    if not isinstance(event, dict):
        raise HookDenied("the hook's input is not a JSON object; denied")
    return event


def _message_for(event: dict[str, object]) -> dict[str, object]:
    name = event.get("hook_event_name")
    tool, arguments = event.get("tool_name"), event.get("tool_input")
    if name not in BEFORE:
        raise HookDenied(f"this hook is for events before a tool call, not for {name!r}; denied")
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        raise HookDenied("the hook's input has no tool and arguments; denied")
    use = str(event.get("tool_use_id") or "")
    return {"op": "request", "tool": tool, "arguments": arguments, "ref": use}


def ask_door(message: dict[str, object]) -> dict[str, object]:
    """Ask the hook server. Raises `HookDenied` where it cannot be asked."""
    path, token = _door_of_this_turn()
    line = write_json({"token": token, **message})
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        door.connect(path)
        door.sendall(line.encode() + b"\n")
        reply_line = _read_line(door)
    except OSError as error:
        raise HookDenied(f"Podium cannot be reached ({error.strerror or error}); denied") from None
    finally:
        door.close()
    answer = read_json(reply_line)
    if not isinstance(answer, dict):
        raise HookDenied("Podium's answer is not a JSON object; denied")
    return answer


def _door_of_this_turn() -> tuple[str, str]:
    """The path of the socket, and the token for it."""
    name = os.environ.get("PODIUM_DOOR_FILE")
    if name is None:
        return os.environ.get("PODIUM_DOOR", ""), os.environ.get("PODIUM_DOOR_TOKEN", "")
    try:
        with open(name, "rb") as file:  # noqa: PTH123 — pathlib loads too slowly
            address = read_json(file.read(MAX_DOOR_FILE_BYTES))
        path, token = address["PODIUM_DOOR"], address["PODIUM_DOOR_TOKEN"]  # type: ignore[index]  # all but an object is caught
        if isinstance(path, str) and isinstance(token, str):
            return path, token
    except (OSError, ValueError, LookupError, TypeError):
        pass
    raise HookDenied("no turn is running; denied, wait until you are given work")


def _read_line(door: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        chunk = door.recv(65536)
        if not chunk or len(line) > MAX_ANSWER_BYTES:
            raise HookDenied("Podium's answer was cut off or too long; denied")
        line += chunk
    return line


def _output_for(event: dict[str, object], decision: str, reason: str) -> dict[str, object]:
    answer = {"permissionDecision": decision, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": event["hook_event_name"], **answer}}


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text).strip()


def _write_all(fd: int, text: str) -> None:
    data = text.encode(errors="replace")
    while data:
        data = data[os.write(fd, data) :]
