"""A real git repository whose agents are scripted, for `podium run`."""

from __future__ import annotations

import subprocess
from typing import Any

import yaml

from tests.integration.cli.command_runner import CommandRunner

TASK = "Add a farewell"
FEAT = "add-a-farewell"
PLAN_PATH = f"docs/dev_docs/plans/plan_{FEAT}.md"
REVIEWS = "docs/dev_docs/reviews"
CHECK = "python3 -c 'import farewell'"

PLAN = """\
# A farewell

## Reference documents
- greeting.py

## Detailed logic
A function `farewell(name)` returns the words.

## Test scenarios
| call | expected |
|---|---|
| farewell("Ann") | "Goodbye, Ann!" |

## Documentation to update
None.

## Expected deliverables
- farewell.py

## Completion checklist
- [ ] farewell.py is there
"""

Turn = dict[str, Any]


def turn(role: str, *acts: dict[str, Any], when: str = "") -> Turn:
    return {"role": role, "when": when, "acts": list(acts)}


def write(path: str, content: str) -> dict[str, Any]:
    return {"write": {"path": path, "content": content}}


def architect(plan: str = PLAN, when: str = "") -> Turn:
    spent = {"usage": {"input": 900, "output": 300, "usd": 0.0123}}
    return turn(
        "architect", write(PLAN_PATH, plan), spent, {"payload": {"plan_path": PLAN_PATH}}, when=when
    )


def architects(most: int = 6) -> list[Turn]:
    """Another plan in each later round."""
    later = [
        architect(f"{PLAN}\nRound {number}.\n", when=f"Stage: plan, round {number}\\.")
        for number in range(2, most)
    ]
    return [*later, architect()]


def plan_reviewer(verdict: str = "APPROVE", when: str = "", **more: Any) -> Turn:
    return turn("plan_reviewer", {"payload": {"verdict": verdict, **more}}, when=when)


def developer(*first: dict[str, Any], code: str = "GOODBYE = 1\n", when: str = "") -> Turn:
    return turn(
        "developer",
        *first,
        write("farewell.py", code),
        write(f"{REVIEWS}/verification_report_{FEAT}.md", f"- [x] it is there: {code!r}\n"),
        {"commit": "Say goodbye"},
        {"payload": {"status": "success", "commit_hash": "HEAD"}},
        when=when,
    )


def auditor(stage: str, document: str) -> Turn:
    path = f"{REVIEWS}/{document}_{FEAT}_v1.md"
    return turn(
        "auditor",
        write(path, "# Review\n\nAll is well.\n"),
        {"payload": {"verdict": "PASS", "review_path": path}},
        when=f"Stage: {stage},",
    )


AUDITORS = (auditor("audit", "code_review"), auditor("merge_review", "merge_review"))


def good_turns() -> list[Turn]:
    """All goes well at once."""
    ideas = ["Translate the farewell"]
    return [*architects(), plan_reviewer(backlog_items=ideas), developer(), *AUDITORS]


def git(cli: CommandRunner, *words: str) -> str:
    named = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    done = subprocess.run(
        ["git", *named, *words],
        cwd=cli.project,
        env=cli.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def set_up(cli: CommandRunner, turns: list[Turn], **settings: Any) -> None:
    """A repository with one commit, whose only agent plays these turns."""
    agents = {"player": {"kind": "scripted", "script": "script.yaml"}}
    cli.says(yaml.safe_dump({"agents": agents, "checks": [CHECK], **settings}))
    (cli.project / "script.yaml").write_text(yaml.safe_dump({"turns": turns}))
    (cli.project / "greeting.py").write_text("HELLO = 1\n")
    (cli.project / ".gitignore").write_text("__pycache__/\n")
    git(cli, "init", "-q", "-b", "main")
    git(cli, "add", ".")
    git(cli, "commit", "-qm", "first")


def play(cli: CommandRunner, turns: list[Turn]) -> None:
    """Let the agent have another script from now on. No agent sees the file, so nothing is committed."""
    (cli.project / "script.yaml").write_text(yaml.safe_dump({"turns": turns}))
