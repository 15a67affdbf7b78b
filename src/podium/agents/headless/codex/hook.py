"""Codex's tool hook: puts what codex wants to do before the tool door, in full.

Runs alone, as `python -IS hook.py HOOK-COMMAND…`, with codex's JSON on stdin. What codex
tells its hooks is less than what is to be judged: the folder of a command stands outside of the
tool's input, and one patch may change many files. So each wish becomes one or several questions
to the hook command, and all of them have to be answered by yes.

Yes is exit 0 and not a word: codex takes a spoken "allow" for a broken hook. Everything else is
exit 2 with the reason on stderr, because codex goes on after any other failure of a hook, and
after an exit 2 without a reason too.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys

SECONDS = 25.0
"""For all questions together; less than half of what codex is told to wait."""
MAX_CHANGES = 60
MAX_REASON_BYTES = 65_536
SPARED = "--judged-elsewhere="
"""Before the hook command: tools whose names begin so are not asked for, Podium judges them itself."""

OPERATIONS = {
    "*** Add File: ": "add",
    "*** Update File: ": "update",
    "*** Delete File: ": "delete",
    "*** Move to: ": "move",
}


APPLIES_PATCH = r"(?:^|[;&|({`\n])\s*[\"']?apply_?patch\b"
"""A command that changes files by a patch, wherever it stands in a line of shell."""
PATCH_IN_SHELL = (
    r"\s*(?:cd\s+(?P<folder>[\w./-]+)\s*&&\s*)?apply_?patch\s*<<\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)\n"
    r"(?P<patch>(?s:.*)\n)(?P=end)\s*"
)
"""The one form of it that is what it says."""


class Denied(Exception):
    """No. The text is what the agent is told."""


def main(hook_command: list[str]) -> None:
    try:
        signal.signal(signal.SIGALRM, _out_of_time)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        event = json.loads(sys.stdin.buffer.read())
        spared, hook_command = spared_by(hook_command)
        asked = [] if is_spared(event, spared) else questions(event)
        for question in asked:
            ask(hook_command, question)
    except Denied as denied:
        _deny(str(denied))
    except BaseException as error:
        _deny(f"podium: the hook failed ({error!r}); denied\n")
    os._exit(0)


def spared_by(argv: list[str]) -> tuple[str, list[str]]:
    """Return the prefix of tools that need not be asked for, empty when all need it; and the hook command."""
    if argv and argv[0].startswith(SPARED):
        return argv[0][len(SPARED) :], argv[1:]
    return "", argv


def is_spared(event: dict[str, object], spared: str) -> bool:
    return bool(spared) and str(event.get("tool_name") or "").startswith(spared)


def questions(event: dict[str, object]) -> list[dict[str, object]]:
    """Return the questions for the door, as events of a hook. Each carries codex's own id of the use."""
    arguments, use = event.get("tool_input"), str(event.get("tool_use_id") or "")
    if not isinstance(arguments, dict) or not use:
        raise Denied("podium: the hook's input has no tool call; denied\n")
    folder = str(event.get("cwd") or "")
    command = str(arguments.get("command") or "")
    if event.get("tool_name") == "apply_patch":
        return patching(event, use, command, folder)
    tool_input = {**arguments, "use": use}
    if event.get("tool_name") == "Bash":
        if "patch" in command and re.search(APPLIES_PATCH, command):
            return patching(event, use, *patch_in(command, folder))
        tool_input["cwd"] = folder
    return [{**event, "tool_input": tool_input}]


def patching(
    event: dict[str, object], use: str, patch: str, folder: str
) -> list[dict[str, object]]:
    """One question for each file of a patch."""
    named = {**event, "tool_name": "apply_patch"}
    return [
        {**named, "tool_input": {**change, "use": use}, "tool_use_id": f"{use}#{number}"}
        for number, change in enumerate(changes_in(patch, folder))
    ]


def patch_in(command: str, folder: str) -> tuple[str, str]:
    """The patch that a line of shell applies, and where: codex does that itself, without the shell."""
    match = re.fullmatch(PATCH_IN_SHELL, command)
    if match is None or f"\n{match['end']}\n" in f"\n{match['patch']}" or _expands(match):
        raise Denied(
            "podium: Permission Denied: a patch inside a command cannot be checked; use the "
            "apply_patch tool, or only `apply_patch <<'EOF'`, the patch and `EOF`\n"
        )
    return match["patch"], os.path.join(folder, match["folder"] or "")  # noqa: PTH118 — as below


def _expands(match: re.Match[str]) -> bool:
    """Return whether a shell would make another patch of it, as it does without quotes around the end."""
    return not match["quote"] and any(sign in match["patch"] for sign in "$`\\")


def changes_in(patch: str, folder: str) -> list[dict[str, str]]:
    """Every file that the patch may change: rather one too many than one too few."""
    changes: list[dict[str, str]] = []
    lines: list[list[str]] = []
    for line in patch.split("\n"):
        operation, path = _header(line)
        if operation == "move" and changes:
            changes.append({"operation": "delete", "path": changes[-1]["path"]})
            lines.append([])
        if operation:
            whole = os.path.join(folder, path)  # noqa: PTH118 — pathlib doubles the time this takes
            changes.append({"operation": operation, "path": whole})
            lines.append([])
        elif lines:
            lines[-1].append(line + "\n")
    if not changes:
        raise Denied("podium: the patch names no file; denied\n")
    if len(changes) > MAX_CHANGES:
        raise Denied(f"podium: at most {MAX_CHANGES} changes in one patch; send several\n")
    return [{**change, "change": "".join(own)} for change, own in zip(changes, lines, strict=True)]


def _header(line: str) -> tuple[str, str]:
    stripped = line.strip()
    for prefix, operation in OPERATIONS.items():
        if stripped.startswith(prefix.strip()):
            return operation, stripped[len(prefix) - 1 :].strip()
    return "", ""


def ask(hook_command: list[str], question: dict[str, object]) -> None:
    """Raise what the hook command denies with."""
    descriptor, reason = _readable(json.dumps(question).encode()), _readable(b"")
    child = _start(hook_command, descriptor, reason)
    os.close(descriptor)
    _, status = os.waitpid(child, 0)
    message = os.pread(reason, MAX_REASON_BYTES, 0).decode(errors="replace")
    os.close(reason)
    if os.waitstatus_to_exitcode(status) == 2:
        raise Denied(
            message if message.strip() else "podium: Permission Denied, without a reason\n"
        )
    if status != 0:
        raise Denied("podium: the request to Podium failed; denied\n")


def _start(command: list[str], stdin: int, stderr: int) -> int:
    """Start the hook command; gives its process id."""
    if command[:2] != [sys.executable, "-IS"] or not command[2].endswith(".py"):
        actions = [
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, stderr, 2),
        ]
        return os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
    child = os.fork()
    if child == 0:
        _become(command[2:], stdin, stderr)
    return child


def _become(script: list[str], stdin: int, stderr: int) -> None:
    """Go on as that script: the interpreter is the same, and starting another takes longest of all."""
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.dup2(stdin, 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(stderr, 2)
        sys.argv = script
        with open(script[0], "rb") as file:  # noqa: PTH123 — as below
            source = compile(file.read(), script[0], "exec")
        exec(source, {"__name__": "__main__", "__file__": script[0]})  # noqa: S102 — it was to be run anyway
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
        sys.stderr.flush()  # the last words without a newline would be lost
    finally:
        os._exit(code)


def _readable(data: bytes) -> int:
    """A file without a name: a patch may be larger than a pipe holds, and a name could be found."""
    descriptor = os.memfd_create("question") if hasattr(os, "memfd_create") else _unlinked()
    while data:
        data = data[os.write(descriptor, data) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _unlinked() -> int:
    # In codex's home, where its commands may not write: in between it does have a name.
    path = os.path.join(os.environ["CODEX_HOME"], f".podium-{os.getpid()}")  # noqa: PTH118 — as above
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.unlink(path)  # noqa: PTH108 — as above
    return descriptor


def _out_of_time(*_: object) -> None:
    _deny("podium: Podium did not answer in time; denied, try again later\n")


def _deny(message: str) -> None:
    try:
        os.write(2, message.encode(errors="replace"))
    finally:
        os._exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
