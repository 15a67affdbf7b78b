"""A run from an issue to the merge of its pull request is killed again and again: same end, and nothing is posted twice."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.core.work import RunStatus
from podium.testing.modelserver import ModelServer
from tests.integration.contract.media import CLAUDE, CODEX, GEMINI, KEY, NONCE, Medium
from tests.integration.forge import description
from tests.integration.forge.github_server import Asked, GitHubResponse, GitHubServer, serving
from tests.integration.pipeline.followed_project import (
    FIXED,
    NUMBER,
    FollowedProject,
    repairs,
    run_git,
)
from tests.integration.pipeline.pipeline_harness import (
    FEAT,
    PLAN,
    PLAN_PATH,
    RIGHT,
    TASK,
    VERIFICATION_PATH,
)

LAST = FIXED + "# answered\n"
SECONDS = 1500.0
ISSUE = 7


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    description.load()
    with serving() as server:
        yield server


class Story:
    """People and CI around an issue and its pull request: red check, then a review comment, then the merge."""

    def __init__(self, followed: FollowedProject) -> None:
        self.followed = followed
        self.github = followed.github
        self.first = ""
        self.comment: dict[str, Any] | None = None
        self.merged = ""
        self.child: subprocess.Popen[bytes] | None = None
        self.killed_at: list[str] = []
        self.github.after = self._after_a_request
        self.github.issues.add(ISSUE, title=TASK)

    @property
    def is_open(self) -> bool:
        return bool(self.github.full_pulls)

    def advance(self) -> None:
        if not self.is_open:
            return
        if not self.first:
            self.first = self.followed.head
            self.github.check_run(self.first, "ci", "failure", log="error: E501 calc.py\n" * 20)
        elif self.comment is None and self.followed.head != self.first:
            self.comment = self.github.review_comment(NUMBER, "Say that it was answered")
        elif self.comment is not None and not self.merged and self.followed.answers():
            self.merged = self.followed.merge()

    def _after_a_request(self, asked: Asked) -> GitHubResponse | None:
        """Kill the process when its answer is posted and before it hears of it."""
        is_reply = asked.method == "POST" and asked.target.endswith("/replies")
        if is_reply and self.child is not None and "reply" not in self.killed_at:
            self.killed_at.append("reply")
            self.child.kill()
        return None


def last_event(project_folder: Path) -> tuple[str, int, str]:
    """Run, number and type of the newest event of the project's only run."""
    database = project_folder / ".podium" / "podium.db"
    if not database.exists():
        return "", 0, ""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=5)) as store:
        words = "select run_id, seq, body from events order by seq desc limit 1"
        try:
            rows = store.execute(words).fetchall()
        except sqlite3.OperationalError:
            return "", 0, ""
    if not rows:
        return "", 0, ""
    event = json.loads(rows[0][2])
    return str(rows[0][0]), int(rows[0][1]), f"{event['type']} {event.get('step', '')}"


async def lived_through(story: Story, kills: int, seed: int) -> str:
    """Host the run by children that are killed, once the pull request is open, and give its id."""
    followed, chance = story.followed, random.Random(seed)
    folder = followed.project.folder
    deadline, run_id = time.monotonic() + SECONDS, ""
    while time.monotonic() < deadline:
        start = ["run", "--follow", "--mode", "quick", "--issue", str(ISSUE)]
        words = ["resume", run_id, "--wait"] if run_id else start
        story.child = subprocess.Popen(
            [sys.executable, "-m", "podium", *words, "--project", str(folder)],
            env=followed.project.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        target = 0
        while story.child.poll() is None and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
            story.advance()
            run_id, number, name = last_event(folder)
            if not story.is_open or len(story.killed_at) >= kills + 1:
                continue
            target = target or number + chance.randint(1, 9)
            if number >= target and name not in story.killed_at:
                story.killed_at.append(name)
                story.child.kill()
        story.child.kill()
        story.child.wait()
        if story.child.returncode == 0:
            break
    return run_id


async def see_it_through(story: Story, kills: int, seed: int) -> None:
    run_id = await lived_through(story, kills, seed)
    followed, github = story.followed, story.github
    async with followed.project.podium() as podium:
        run = await (await podium.store()).read(lambda view: view.run(run_id))
    assert run is not None
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for, story.killed_at)
    assert len(story.killed_at) >= kills, story.killed_at
    assert run.result["pull_request"]["merge_commit"] == story.merged
    assert run_git(followed.bare, "show", "main:calc.py") == LAST.strip()
    assert run.result["follow_up"]["answered"] == 1
    # Nothing was posted twice: one pull request, one answer, in the thread of the comment.
    assert len(github.full_pulls) == 1
    assert len(followed.answers()) == 1
    assert [item.get("in_reply_to_id") for item in github.review_comments[NUMBER]] == [
        None,
        story.comment["id"] if story.comment else 0,
    ]
    (comment,) = github.issue_comments.pop(ISSUE)
    assert followed.branch in comment["body"] or f"/pull/{NUMBER}" in comment["body"]
    assert github.issue_comments == {}


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_a_killed_run_with_scripted_agents_posts_nothing_twice(
    tmp_path: Path, github: GitHubServer
) -> None:
    turns = [*repairs(2, FIXED), *repairs(3, LAST)]
    followed = FollowedProject(tmp_path, github, turns, interval=1.0, rounds=9)
    await see_it_through(Story(followed), kills=12, seed=int(time.time()))


def rule(stage: str, number: int, *steps: dict[str, Any], payload: dict[str, Any]) -> dict[str, Any]:  # fmt: skip
    answer = {"text": "Done.", "payload": {**payload, "podium_nonce": "{{nonce}}"}}
    when = f"Stage: {stage}, round {number}\\.{NONCE}"
    return {"name": f"{stage}-{number}", "when": when, "steps": [*steps, answer]}


def wrote(path: str, content: str) -> dict[str, Any]:
    return {"write": {"path": path, "content": content}}


def developed(number: int, content: str) -> list[dict[str, Any]]:
    review = f"docs/dev_docs/reviews/code_review_{FEAT}_v{number}.md"
    return [
        rule(
            "develop",
            number,
            {"run": f"printf '%s' '{content}' > calc.py"},
            wrote(VERIFICATION_PATH, f"# Verified\n\n- [x] round {number}\n"),
            {"run": f"git add --all && git commit --quiet --message 'Round {number}'"},
            payload={"commit_hash": "HEAD", "status": "success"},
        ),
        rule(
            "audit",
            number,
            wrote(review, "# Review\n\nAll is well.\n"),
            payload={"verdict": "PASS", "review_path": review},
        ),
    ]


SCRIPT = {
    "rules": [
        rule("plan", 1, wrote(PLAN_PATH, PLAN), payload={"plan_path": PLAN_PATH}),
        *developed(1, RIGHT),
        *developed(2, FIXED),
        *developed(3, LAST),
    ]
}


@pytest.mark.soak
@pytest.mark.smoke
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "cast",
    [
        pytest.param({"default": CODEX, "developer": GEMINI, "auditor": CLAUDE}, id="gemini"),
        pytest.param({"default": GEMINI, "developer": CLAUDE, "auditor": CODEX}, id="claude"),
        pytest.param({"default": CLAUDE, "developer": CODEX, "auditor": GEMINI}, id="codex"),
    ],
)
async def test_a_killed_run_with_real_clis_posts_nothing_twice(
    tmp_path: Path, github: GitHubServer, cast: dict[str, Medium]
) -> None:
    followed = FollowedProject(tmp_path, github, interval=1.0, rounds=9)
    async with ModelServer(SCRIPT, key=KEY) as server:
        agents = {medium.name: medium.settings(server.url) for medium in cast.values()}
        roles = {role: {"agent": medium.name} for role, medium in cast.items()}
        settings = {"secrets": ["MODEL_KEY"], "agents": agents, "roles": roles}
        own = followed.project.home / "config.yaml"
        own.write_text(yaml.safe_dump({**yaml.safe_load(own.read_text()), **settings}))
        followed.project.environ["MODEL_KEY"] = KEY
        await see_it_through(Story(followed), kills=10, seed=int(time.time()))
