"""Secrets that an agent wrote by its shell are found before they are committed for good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.app.secrets import secret_finder
from podium.core.work import Run, RunStatus
from podium.git import commit_scan
from tests.integration.pipeline.pipeline_harness import (
    PLAN,
    PLAN_PATH,
    RIGHT,
    VERIFICATION_PATH,
    Project,
    develops,
    plans,
    smooth,
    turn,
    writes,
)

VALUE = "correct-horse-7f3a91-battery"
TOKEN = "ghp_" + "0a1b2c3d4e5f6a7b8c9d0a1b2c3d4e5f6a7b"
AGAIN = "Stage: develop, round 2"


def built(folder: Path, *first: dict[str, Any], settings: dict[str, Any] | None = None) -> Project:
    project = Project(folder).build([*first, *smooth()], settings=settings)
    project.environ["DEPLOY_PASSWORD"] = VALUE
    return project


def piecemeal(text: str, path: str) -> dict[str, Any]:
    """Written in two halves: no single call holds the secret, so the door lets both pass."""
    half = text.index("7f3a91") if VALUE in text else text.index("5f6a7b") if TOKEN in text else 5
    first, second = text[:half], text[half:]
    return {"run": f"printf '%s' '{first}' >> {path} && printf '%s\\n' '{second}' >> {path}"}


def leaks(path: str, text: str) -> dict[str, Any]:
    """The first round of a developer who writes this by the shell."""
    made = develops(when="Stage: develop, round 1")
    made["acts"] = [writes(path, "# one\n"), piecemeal(text, path), *made["acts"]]
    return made


def mends(*more: dict[str, Any]) -> dict[str, Any]:
    """The second round, which finds its files and takes the secret out of them."""
    return turn(
        "developer",
        *more,
        writes(VERIFICATION_PATH, "# Verified\n\n- [x] add(2, 2) == 4\n"),
        {"commit": "Add instead of subtracting"},
        {"payload": {"commit_hash": "HEAD", "status": "success"}},
        when=AGAIN,
    )


async def problems(project: Project, run: Run, stage: str) -> str:
    ended = [e for e in await project.events(run.id) if e["type"] == "stage_ended"]
    return "\n".join(problem for e in ended if e["stage"] == stage for problem in e["problems"])


async def verdicts(project: Project, run: Run) -> list[str]:
    return [e["verdict"] for e in await project.events(run.id) if e["type"] == "stage_ended"]


def reachable(project: Project, branch: str) -> str:
    """All commits of the branch and of the run's history."""
    refs = project.git("for-each-ref", "--format=%(refname)", "refs/podium/runs").split()
    return project.git("log", "--patch", "--format=%B", branch, *refs, "^main")


@pytest.mark.soak  # the last test comes to it too
@pytest.mark.parametrize(
    ("path", "text", "output_text"),
    [
        ("tests/data.py", f'PASSWORD = "{VALUE}"', "tests/data.py:2 (the value of DEPLOY_PASSWORD"),
        ("settings.py", f'TOKEN = "{TOKEN}"', "settings.py:2 (looks like a github-token"),
    ],
)
async def test_a_secret_in_a_file_goes_back_to_the_developer_and_is_in_no_commit(
    tmp_path: Path, path: str, text: str, output_text: str
) -> None:
    removes = mends({"run": f"test -s calc.py && rm {path}"})
    project = built(tmp_path, leaks(path, text), removes)
    run = await project.run()
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    branch = run.result["branch"]
    assert project.tree(branch)["calc.py"] == RIGHT.strip()
    assert VALUE not in reachable(project, branch)
    assert TOKEN not in reachable(project, branch)
    found = await problems(project, run, "develop")
    assert output_text in found
    assert VALUE not in found
    assert TOKEN not in found


async def refused(tmp_path: Path, *acts: dict[str, Any]) -> str:
    """Return the problems reported to a developer who commits by these acts; the next round succeeds, and nothing leaks."""
    first = develops(when="Stage: develop, round 1")
    first["acts"] = [*first["acts"][:-2], *acts, first["acts"][-1]]
    project = built(tmp_path, first, mends({"run": "rm -rf tests settings.py junk"}))
    run = await project.run()
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    branch = run.result["branch"]
    assert project.tree(branch)["calc.py"] == RIGHT.strip()
    assert VALUE not in reachable(project, branch)
    found = await problems(project, run, "develop")
    assert VALUE not in found
    return found


def commits(how: str) -> dict[str, Any]:
    who = "git -c user.name=Bo -c user.email=bo@example.org"
    return {"run": f"git add --all && {who} commit --quiet {how}"}


@pytest.mark.soak  # held in tests/integration/workspaces/test_commit_scan.py without a run
async def test_a_message_in_the_form_of_a_diff_hides_no_secret(tmp_path: Path) -> None:
    words = writes("junk", "Add\n\n+++ b/tests/x\n@@ -0,0 +1,1 @@\nkey ")
    found = await refused(tmp_path, words, piecemeal(VALUE, "junk"), commits("--file=junk"))
    assert "a commit's message (the value of DEPLOY_PASSWORD" in found


@pytest.mark.soak  # held in tests/integration/workspaces/test_commit_scan.py without a run
async def test_many_that_may_be_meant_do_not_hide_one_that_may_not(tmp_path: Path) -> None:
    item = "printf 'ghp_%s%s\\n' 0a1b2c3d4e5f6a7b8c9d0a1b2c3d4e5f6a $i > tests/$i.txt"
    decoys = {"run": f"mkdir -p tests; for i in $(seq 100 180); do {item}; done"}
    found = await refused(
        tmp_path, decoys, commits("-m one"), piecemeal(VALUE, "settings.py"), commits("-m two")
    )
    assert "settings.py:1 (the value of DEPLOY_PASSWORD" in found
    assert "tests/" not in found


@pytest.mark.soak
async def test_what_cannot_all_be_looked_through_is_sent_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_scan, "MAX_BYTES", 200_000)
    junk = {"run": "seq 1 60000 > junk"}
    found = await refused(
        tmp_path, junk, commits("-m one"), piecemeal(VALUE, "settings.py"), commits("-m two")
    )
    assert "too large to scan" in found


@pytest.mark.soak
async def test_one_in_a_document_goes_back_to_whoever_wrote_it(tmp_path: Path) -> None:
    leaky = turn(
        "architect",
        writes(PLAN_PATH, PLAN),
        piecemeal(f"Log in with {VALUE}.", PLAN_PATH),
        {"payload": {"plan_path": PLAN_PATH}},
        when="Stage: plan, round 1",
    )
    project = built(
        tmp_path,
        leaky,
        {**plans(), "when": "Stage: plan, round 2"},
        settings={"budgets": {"run": {"turns": 2}}},
    )
    run = await project.run()
    assert await verdicts(project, run) == ["SENT_BACK", "DONE"]
    branch = project.git("for-each-ref", "--format=%(refname:short)", "refs/heads/task/")
    assert PLAN_PATH in reachable(project, branch)
    assert VALUE not in reachable(project, branch)
    assert PLAN_PATH in await problems(project, run, "plan")


@pytest.mark.soak
async def test_what_only_looks_like_one_in_test_data_is_for_a_person_before_it_goes_out(
    tmp_path: Path,
) -> None:
    project = built(tmp_path, leaks("tests/fixtures/answer.txt", f"token: {TOKEN}"))
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN, (run.failure, run.waiting_for)
    asked = [e for e in await project.events(run.id) if e["type"] == "run_needed_human"]
    assert "tests/fixtures/answer.txt:2 (looks like a github-token" in asked[-1]["reason"]
    assert not list((project.folder / ".podium").glob("pull_requests/*"))
    run = await project.resume(run.id)
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    assert TOKEN in reachable(project, run.result["branch"])


@pytest.mark.soak
async def test_code_handling_credentials_is_no_secret_and_values_are_distinguished_from_shapes(
    tmp_path: Path,
) -> None:
    project = built(tmp_path)
    async with project.podium() as podium:
        secrets_in = secret_finder(podium.redactor)
    for code in (
        'url = "postgresql://user:password@localhost/db"',
        "curl -H 'Authorization: Bearer YOUR_TOKEN_HERE' example.org",
        'marked = "[redacted:github-token]"',
    ):
        assert secrets_in(code) == ()
    assert secrets_in(f"{TOKEN} and {VALUE}") == ("secret:DEPLOY_PASSWORD", "github-token")


@pytest.mark.soak
async def test_a_password_inside_an_address_is_a_value_that_podium_knows(tmp_path: Path) -> None:
    project = built(tmp_path)
    project.environ["SHOP_DATABASE_URL"] = "postgresql://shop:hunter2-winter-31@db/shop"
    async with project.podium() as podium:
        secrets_in = secret_finder(podium.redactor)
    text = "secret:SHOP_DATABASE_URL:password"
    assert secrets_in("the password is hunter2-winter-31") == (text,)
    assert secrets_in("postgresql://shop:hunter2-winter-31@db/shop") == (text,)


@pytest.mark.soak
async def test_marks_that_stand_there_already_hide_no_secret(tmp_path: Path) -> None:
    project = built(tmp_path)
    async with project.podium() as podium:
        secrets_in = secret_finder(podium.redactor)
    swallowed = "https://u:x[redacted:github-token]@h https://u:x[redacted:DEPLOY_PASSWORD]@h"
    assert secrets_in(swallowed) == ()
    assert secrets_in(f"{swallowed} {TOKEN} {VALUE}") == ("secret:DEPLOY_PASSWORD", "github-token")


LEARNED = {"lessons": ["calc.py is imported by name"], "backlog_items": ["Subtract as well"]}


@pytest.mark.soak
async def test_after_a_refused_secret_files_of_podium_do_not_lie_in_the_developers_way(
    tmp_path: Path,
) -> None:
    leaky = leaks("settings.py", f'PASSWORD = "{VALUE}"')
    leaky["acts"][-1]["payload"] |= LEARNED
    project = built(tmp_path, leaky, mends({"run": "test -s calc.py && rm settings.py"}))
    run = await project.run()
    assert run.status is RunStatus.SUCCEEDED, (run.failure, run.waiting_for)
    rounds = [e["round"] for e in await project.events(run.id) if e["type"] == "stage_ended"]
    assert max(rounds) == 2
    tree = project.tree(run.result["branch"])
    assert LEARNED["lessons"][0] in tree["AGENT_MEMORY.md"]
    assert LEARNED["backlog_items"][0] in tree["docs/dev_docs/backlog.md"]
    assert "merge=union" in tree[".gitattributes"]
    assert VALUE not in reachable(project, run.result["branch"])


async def test_open_findings_are_in_every_later_prompt_and_before_the_person(
    tmp_path: Path,
) -> None:
    leaky = leaks("settings.py", f'PASSWORD = "{VALUE}"')
    # It cannot be imported: on the base the test was red in another way.
    red = mends({"run": "rm settings.py"}, writes("calc.py", "def add(one, two) return 7\n"))
    idle = turn("developer", {"payload": {"commit_hash": "HEAD", "status": "success"}})
    project = built(tmp_path, leaky, red, idle)
    run = await project.run(mode="quick")
    assert run.status is RunStatus.NEEDS_HUMAN, (run.failure, run.waiting_for)
    branch = project.git("for-each-ref", "--format=%(refname:short)", "refs/heads/task/")
    assert "return 7" in reachable(project, branch)
    assert VALUE not in reachable(project, branch)
    output = await problems(project, run, "develop")
    assert "settings.py:2 (the value of DEPLOY_PASSWORD" in output
    assert VALUE not in output
    asked = [e for e in await project.events(run.id) if e["type"] == "agent_asked"]
    prompts = {e["step"]: e["prompt"] for e in asked}
    assert "the value of DEPLOY_PASSWORD" in prompts["develop-2"]
    assert "python3 -m unittest -q` failed" in prompts["develop-3"]
    later = prompts["develop-4"]
    assert "there is no new commit" in later
    assert "python3 -m unittest -q` failed" in later
    assert run.failure is not None
    reason = run.failure.message
    assert "there is no new commit" in reason
    assert "unittest" in reason
    assert "develop said SENT_BACK" not in reason
