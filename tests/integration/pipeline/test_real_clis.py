"""The pipeline with the real Gemini CLI, codex and Claude Code in its roles, on a loopback model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.core.work import RunStatus
from podium.testing.modelserver import ModelServer
from tests.integration.contract.media import CLAUDE, CODEX, GEMINI, KEY, NONCE, Medium
from tests.integration.pipeline.pipeline_harness import (
    FEAT,
    PLAN,
    PLAN_PATH,
    REPORT,
    REPORT_PATH,
    RIGHT,
    VERIFICATION_PATH,
    Project,
)

pytestmark = pytest.mark.smoke

COMMIT = "git add --all && git commit --quiet --message 'Add instead of subtracting'"


def review(kind: str) -> str:
    return f"docs/dev_docs/reviews/{kind}_review_{FEAT}_v1.md"


def part(stage: str, *steps: dict[str, Any], payload: dict[str, Any]) -> dict[str, Any]:
    """Return the model's answer to the agent of a stage."""
    answer = {"text": "Done.", "payload": {**payload, "podium_nonce": "{{nonce}}"}}
    when = f"Stage: {stage}, round 1\\.{NONCE}"
    return {"name": stage, "when": when, "steps": [*steps, answer]}


def writes(path: str, content: str) -> dict[str, Any]:
    return {"write": {"path": path, "content": content}}


SCRIPT = {
    "rules": [
        part("investigate", writes(REPORT_PATH, REPORT), payload={"report_path": REPORT_PATH}),
        part("analyse", payload={"verdict": "APPROVE"}),
        part("plan", writes(PLAN_PATH, PLAN), payload={"plan_path": PLAN_PATH}),
        part("plan_review", payload={"verdict": "APPROVE"}),
        part(
            "develop",
            {"run": "cat calc.py"},
            {"run": f"printf '%s' '{RIGHT}' > calc.py"},
            writes(VERIFICATION_PATH, "# Verified\n\n- [x] add(2, 2) == 4\n"),
            {"run": "python3 -m unittest -q"},
            {"run": "git checkout main"},
            {"run": COMMIT},
            payload={"commit_hash": "HEAD", "status": "success"},
        ),
        part(
            "audit",
            {"run": "git log --oneline"},
            writes(review("code"), "# Review\n\nAll is well.\n"),
            payload={"verdict": "PASS", "review_path": review("code")},
        ),
        part(
            "merge_review",
            writes(review("merge"), "# Review\n\nStill well.\n"),
            payload={"verdict": "PASS", "review_path": review("merge")},
        ),
    ]
}

CASTS = [
    pytest.param(
        {"default": CODEX, "developer": GEMINI, "auditor": CLAUDE}, "quick", id="gemini develops"
    ),
    pytest.param(
        {"default": GEMINI, "developer": CLAUDE, "auditor": CODEX},
        "bugfix",
        id="claude develops",
        marks=pytest.mark.soak,
    ),
    pytest.param(
        {"default": CLAUDE, "developer": CODEX, "auditor": GEMINI},
        "bugfix",
        id="codex develops",
        marks=pytest.mark.soak,
    ),
]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("cast", "mode"), CASTS)
async def test_real_clis_make_a_reviewed_branch(
    cast: dict[str, Medium], mode: str, tmp_path: Path
) -> None:
    project = Project(tmp_path).build([])
    before = project.git("rev-parse", "main")
    async with ModelServer(SCRIPT, key=KEY) as server:
        _give_roles(project, cast, server.url)
        run = await project.run(mode=mode)
        assert run.status is RunStatus.SUCCEEDED, run.failure or run.waiting_for
        messages = [str(request.body) for request in server.requests]
    assert project.tree(run.result["branch"])["calc.py"] == RIGHT.strip()
    assert project.git("rev-parse", "main") == before
    agents = {stage["role"]: stage["agent"] for stage in run.result["stages"]}
    assert agents["developer"] == cast["developer"].name
    assert agents["auditor"] == cast["auditor"].name
    events = await project.events(run.id)
    refused = [e["arguments"] for e in events if e["type"] == "tool_refused"]
    assert any("git checkout main" in str(item) for item in refused)
    # Clean slate, on the wire: no request of the auditor's holds what the developer's model said.
    judged = [body for body in messages if "Stage: audit, round 1" in body]
    assert judged
    assert not any("git checkout main" in body for body in judged)


def _give_roles(project: Project, cast: dict[str, Medium], url: str) -> None:
    """In the user's own file: addresses and variables of a project's need trust."""
    agents = {medium.name: medium.settings(url) for medium in cast.values()}
    roles = {role: {"agent": medium.name} for role, medium in cast.items()}
    project.home.mkdir(exist_ok=True)
    settings = {"secrets": ["MODEL_KEY"], "agents": agents, "roles": roles}
    (project.home / "config.yaml").write_text(yaml.safe_dump(settings))
    project.environ["MODEL_KEY"] = KEY
