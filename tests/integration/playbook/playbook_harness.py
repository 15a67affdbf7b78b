"""A small plugin, a playbook for it and a scripted agent that follows it, on a desk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.integration.cli.command_runner import CommandResult, CommandRunner

PROFILE: dict[str, Any] = {
    "name": "tiny",
    "kind": "demo",
    "language": "text",
    "version_files": ["version.txt"],
    "forbidden_paths": ["vendor"],
    "commands": {"test": "grep -q 2.0 version.txt"},
}
HEAD: dict[str, Any] = {
    "name": "bump",
    "inputs": {"version": {"default": "2.0"}},
    "success": ["@test"],
}
PAGE = "# Bump\n\n## Set the version\n\nWrite {{ version }} into version.txt.\n"
EDIT = {
    "call": "edit_file",
    "with": {"path": "version.txt", "edits": [{"find": "1.0", "replace": "2.0"}]},
}
READ = {"call": "read_file", "with": {"path": "version.txt"}}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"call": tool, "with": arguments}


class Stage:
    """Sets the scene and lets the curtain up."""

    def __init__(self, cli: CommandRunner) -> None:
        self.cli = cli
        self.root = cli.project
        (self.root / "version.txt").write_text("1.0\n")
        (self.root / "vendor").mkdir()
        (self.root / "vendor" / "lib.txt").write_text("theirs\n")
        self.profile()
        self.playbook()
        self.acts(READ, EDIT)

    def profile(self, **others: Any) -> None:
        (self.root / "plugin-profile.yaml").write_text(yaml.safe_dump({**PROFILE, **others}))

    def playbook(self, page: str = PAGE, **others: Any) -> None:
        front = yaml.safe_dump({**HEAD, **others})
        (self.root / "bump.md").write_text(f"---\n{front}---\n{page}")

    def settings(self, **others: Any) -> None:
        agents = {"script": {"kind": "scripted", "script": "script.yaml"}}
        self.cli.says(yaml.safe_dump({"agents": agents, **others}))

    def acts(self, *acts: Any, reply: str = "All done, I promise.") -> None:
        self.turns([{"role": "playbook", "acts": list(acts), "reply": reply}])

    def turns(self, turns: Sequence[Any]) -> None:
        (self.root / "script.yaml").write_text(yaml.safe_dump({"turns": list(turns)}))
        self.settings()

    def run(self, *arguments: str) -> CommandResult:
        return self.cli.run("playbook", "run", "bump.md", *arguments)

    def events(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        """Exit code, and every line of --json."""
        result = self.run("--json", *arguments)
        return result.code, [json.loads(line) for line in result.out.splitlines()]

    def text(self, path: str) -> str:
        return (self.root / path).read_text()


def of_type(events: Sequence[dict[str, Any]], *types: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] in types]


def result_of(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = events[-1]
    assert found["type"] == "result"
    return found


def trace_of(root: Path, run_id: str) -> list[dict[str, Any]]:
    file = root / ".podium" / "runs" / run_id / "execution_trace.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]
