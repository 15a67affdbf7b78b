"""Tell Podium how a tool of Gemini CLI ended: the command of its hook behind every tool.

Runs alone as `python -IS after.py HOOK…`: the hook's JSON on stdin, and the command that
carries it to Podium. The CLI says in words what became of a command; here they become figures.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys

ENDING = re.compile(
    r"(?:^|\n)(?:Exit Code: (\d{1,3})\n)?(?:Signal: (\S{1,40})\n)?(?:Background PIDs: [^\n]*\n)?"
    r"Process Group PGID: \d+\s*(?:</untrusted_context>)?\s*$"
)
"""The last lines about a command that ran. An exit code of 0 is not mentioned."""
IN_BACKGROUND = "Command moved to background"
LONGEST_OUTPUT = 4_000


def main() -> None:
    event = json.loads(sys.stdin.buffer.read())
    event["tool_response"] = outcome(event.get("tool_name"), event.get("tool_response"))
    subprocess.run(sys.argv[1:], input=json.dumps(event).encode(), check=False)


def outcome(tool: object, response: object) -> dict[str, object]:
    """What the tool's response amounts to, with an `error` when it was no success."""
    found = response if isinstance(response, dict) else {}
    said = found.get("llmContent")
    text = said if isinstance(said, str) else json.dumps(said)
    ended: dict[str, object] = {"done": True, "output": text[:LONGEST_OUTPUT]}
    if isinstance(error := found.get("error"), dict):
        ended.update(done=False, error=str(error.get("message") or "failed"))
    elif tool == "run_shell_command":
        ended.update(command_ended(text))
    return ended


def command_ended(text: str) -> dict[str, object]:
    if IN_BACKGROUND in text[:100]:
        return {"exit_code": None}
    ending = ENDING.search(text)
    if ending is None:
        # The CLI has checks of its own, and its records call what they stop a success.
        return {"done": False, "error": text[:LONGEST_OUTPUT] or "it did not run"}
    code, signal = int(ending[1] or 0), ending[2]
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    ended: dict[str, object] = {"exit_code": code, "output_sha256": digest}
    if signal or code:
        why = f"ended by signal {signal}" if signal else f"exit code {code}"
        ended.update(done=False, error=why)
    return ended


if __name__ == "__main__":
    main()
