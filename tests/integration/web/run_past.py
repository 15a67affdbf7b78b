"""A run of the pipeline as hostile as agents can make one, on a real branch."""

from __future__ import annotations

import subprocess
from pathlib import Path

from podium.app.app import Podium
from podium.core import events as e
from podium.core.decisions import (
    CallOutcome,
    CallRecord,
    CallStatus,
    Decision,
    Effect,
    Receipt,
    Tier,
    TierTerm,
    Usage,
    counts_of,
)
from podium.core.work import Failure, Run, RunStatus
from podium.jobs.pipeline.events import StageBegan, StageEnded
from podium.ports import Transaction

HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>\x1b[31m\u202e"
SEEN = "<script>window.hacked=1</script>"
"""What a person reads of it."""
FILE = "<img src=x onerror=window.hacked=1>.txt"
DOCUMENT = "docs/<b>plan.md"
TEXT = f"""# Plan {HOSTILE}

[click](javascript:window.hacked=1) [file](../../secret) [there](https://example.org/x)
![picture](https://example.org/p.png)

<iframe src="https://example.org"></iframe>

| a | b |
|---|---|
| 1 | {SEEN} |
"""


def git(folder: Path, *words: str) -> str:
    named = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    command = ["git", *named, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def hostile_branch(project: Path) -> str:
    """A repository with a branch whose files and lines are all tricks. Gives the branch's commit."""
    project.mkdir()
    git(project, "init", "-q", "-b", "main")
    (project / "podium.yaml").write_text("{}\n")
    (project / "kept.txt").write_text("old line\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    git(project, "switch", "-qc", "task/hostile")
    (project / FILE).write_text(HOSTILE + "\n")
    (project / "kept.txt").write_text("new line\n")
    (project / DOCUMENT).parent.mkdir()
    (project / DOCUMENT).write_text(TEXT)
    git(project, "add", ".")
    git(project, "commit", "-qm", "second")
    commit = git(project, "rev-parse", "HEAD")
    git(project, "switch", "-q", "main")
    return commit


async def hostile_run(podium: Podium, commit: str) -> str:
    """A run whose every word comes from an agent. It failed."""
    store, now = await podium.store(), podium.clock.now()
    run = Run(
        id=podium.ids.new("run"),
        flow="pipeline",
        status=RunStatus.FAILED,
        task=f"Task {HOSTILE}",
        input={"repository": str(podium.folders.project), "base": "main", "said": HOSTILE},
        created_at=now,
        finished_at=now,
        failure=Failure(kind="StepFailed", message=f"failure {HOSTILE}"),
    )
    call = CallRecord(
        key=f"{run.id}:develop-1:0123456789ab.0",
        run_id=run.id,
        step_key="develop-1",
        tool="run_command",
        digest="sha256:x",
        status=CallStatus.COMPLETED,
        decision=Decision(
            effect=Effect.ASK,
            rule="ask-people",
            reason=f"reason {HOSTILE}",
            tier=Tier.T3,
            arithmetic=(TierTerm(tier=Tier.T3, because=f"leaves {HOSTILE}"),),
        ),
        arguments={"command": HOSTILE},
        outcome=CallOutcome(ok=True, result={"stdout": HOSTILE}),
        receipt_number=1,
        requested_at=now,
    )
    receipt = Receipt(
        run_id=run.id, number=0, call_key=call.key, tool=call.tool, digest=call.digest,
        status="completed", tier=Tier.T3, rule="ask-people", approved_by=(HOSTILE,),
        fields={"stdout": HOSTILE}, requested_at=now, settled_at=now,
    )  # fmt: skip

    def work(tx: Transaction) -> None:
        tx.add_run(run)
        for body in _events(commit):
            tx.append(run.id, body)
        tx.save_call(call)
        tx.add_receipt(receipt)
        for counter, amount in counts_of(
            Usage(usd=0.25, input_tokens=1200), run.id, "develop-1", now
        ):
            tx.count(counter, now, amount)

    await store.write(work)
    return run.id


def _events(commit: str) -> list[e.EventBody]:
    role, agent = f"auditor {HOSTILE}", f"codex {HOSTILE}"
    check = {"command": f"make {HOSTILE}", "exit_code": 1, "seconds": 1.0, "tail": HOSTILE}
    return [
        e.RunStarted(owner="w", fence=1),
        StageBegan(stage="develop", role="developer"),
        e.AgentAsked(role=role, agent=agent, prompt=f"prompt {HOSTILE}", step="develop-1"),
        e.AgentReplied(role=role, agent=agent, text=f"reply {HOSTILE}"),
        StageEnded(stage="develop", role="developer", verdict="DONE", commit=commit),
        e.ChecksRan(commit=commit, results=(check,), passed=False),
        StageBegan(stage=f"audit {HOSTILE}", role=role),
        StageEnded(
            stage=f"audit {HOSTILE}", role=role, verdict=f"FAIL {HOSTILE}", agent=agent,
            document=DOCUMENT, commit=commit,
        ),
        e.NoteTaken(text=f"note {HOSTILE}"),
        e.StepStarted(step=f"step {HOSTILE}"),
        StageBegan(stage="develop", role="developer", round=2),
        e.RunFailed(failure=Failure(kind="StepFailed", message=f"failure {HOSTILE}")),
    ]  # fmt: skip
