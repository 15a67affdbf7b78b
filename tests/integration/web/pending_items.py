"""Things that wait for a person, put into a console's record as agents and flows do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from podium.app.app import Podium
from podium.core.decisions import Approval, CallRecord, CallStatus, Decision, Effect, Tier, TierTerm
from podium.core.events import ApprovalRequested
from podium.core.model import Json
from podium.core.work import Failure, Run, RunStatus
from podium.ports import Transaction

HOSTILE = "<script>document.title='pwned'</script><img src=x onerror=alert(1)>\x1b[31m\u202e"
"""What an agent might call anything."""


async def add_run(podium: Podium, task: str = "a task", **fields: Any) -> Run:
    run = Run(
        id=podium.ids.new("run"),
        created_at=podium.clock.now(),
        task=task,
        **{"flow": "pipeline", "status": RunStatus.WAITING, **fields},
    )
    await (await podium.store()).write(lambda tx: tx.add_run(run))
    return run


async def add_approval(
    podium: Podium,
    run: Run,
    tool: str = "write_file",
    arguments: dict[str, Json] | None = None,
    *,
    tier: Tier = Tier.T1,
    seconds: float = 3 * 3600,
    **fields: Any,
) -> Approval:
    """A question of an agent of the run, as its door stores it."""
    approval_id, now = podium.ids.new("apr"), podium.clock.now()
    approval = Approval(
        id=approval_id,
        run_id=run.id,
        call_key=f"{run.id}:act:{approval_id}",
        digest=f"sha256:{approval_id}",
        tool=tool,
        summary=f"{tool} …",
        arguments=arguments if arguments is not None else {"path": "a.txt", "content": "hello\n"},
        tier=tier,
        arithmetic=(TierTerm(tier=tier, because="the tool's own tier"),),
        requested_at=now,
        deadline=now + timedelta(seconds=seconds),
        **fields,
    )
    call = CallRecord(
        key=approval.call_key,
        run_id=run.id,
        step_key="act",
        tool=tool,
        digest=approval.digest,
        status=CallStatus.REFUSED,
        decision=Decision(effect=Effect.ASK, rule="ask", reason="asks a person", tier=tier),
        agent="codex",
        role="developer",
        requested_at=now,
    )

    output = ApprovalRequested(
        approval_id=approval.id,
        call=approval.call_key,
        tool=approval.tool,
        summary=approval.summary,
        digest=approval.digest,
        tier=str(approval.tier),
        approvers=approval.approvers,
        deadline=approval.deadline,
    )

    def store(tx: Transaction) -> None:
        tx.save_approval(approval)
        tx.save_call(call)
        tx.append(run.id, output)

    await (await podium.store()).write(store)
    return approval


async def add_doubt(podium: Podium, task: str = "publish it") -> Run:
    """A run that stopped at a call of which nobody knows whether it happened."""
    failure = Failure(kind="CallInDoubt", message="nobody knows whether publish happened")
    run = await add_run(podium, task, status=RunStatus.NEEDS_HUMAN, failure=failure)
    call = CallRecord(
        key=f"{run.id}:publish:0",
        run_id=run.id,
        step_key="publish",
        tool="http_post",
        digest="sha256:doubt",
        status=CallStatus.IN_DOUBT,
        decision=Decision(effect=Effect.ALLOW, rule="r", reason="", tier=Tier.T3),
        arguments={"url": "https://example.com/pages"},
        requested_at=podium.clock.now(),
    )
    await (await podium.store()).write(lambda tx: tx.save_call(call))
    return run


async def approval_now(podium: Podium, approval_id: str) -> Approval:
    found = await (await podium.store()).read(lambda view: view.approval(approval_id))
    assert found is not None
    return found
