"""Podium's own services as tools of the pack `podium`: what `podium ask` can look at, start and end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING

from podium.core.decisions import CallOutcome
from podium.core.errors import CallInDoubt, OutcomeUnknown, PodiumError, ToolBroke
from podium.core.ids import short_id
from podium.core.model import Json
from podium.core.work import Run, RunStatus
from podium.ports import RunQuery, StoreView
from podium.tools.scope import Handler, ToolScope

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.app.run_list import RunListing
    from podium.config.configuration import Configuration


OPERATOR = "operator"
DEFAULT_DAYS = 7
MAX_ROWS = 50
MAX_EVENTS = 8
TAIL_LINES = 12
FAILED = (RunStatus.FAILED, RunStatus.NEEDS_HUMAN)

Fields = dict[str, Json]
Service = Callable[["Podium", Fields, ToolScope], Awaitable[Fields | CallOutcome]]


def operator_services(podium: Podium) -> dict[str, Handler]:
    """The services by the names that a registry gives them."""
    return {name: partial(_served, podium, service) for name, service in SERVICES.items()}


async def resolved_context(
    podium: Podium, sources: Mapping[str, str], message: str
) -> dict[str, Json]:
    """Argument → its value, for arguments that nobody named; see `x-resolve`. What is not there is left out.

    No record is made where there is none.
    """
    values: dict[str, Json] = {}
    for name, source in sources.items():
        if source == "message":
            values[name] = message
        elif podium.has_record:
            last = last_failed_run if source == "last_failed_run" else last_run
            run = await (await podium.store()).read(last)
            values |= {name: run.id} if run else {}
    return values


def last_run(view: StoreView) -> Run | None:
    """The newest run. Answers of the operator that have ended are none that anybody means by it."""
    runs = view.runs(RunQuery(limit=MAX_ROWS))
    return next((run for run in runs if run.flow != OPERATOR or not run.status.ended), None)


def last_failed_run(view: StoreView) -> Run | None:
    """The newest run that failed, or that stopped and needs a person."""
    return next(iter(view.runs(RunQuery(statuses=FAILED, limit=1))), None)


async def _served(
    podium: Podium, service: Service, arguments: Fields, scope: ToolScope
) -> Fields | CallOutcome:
    try:
        return await service(podium, arguments, scope)
    except (ToolBroke, OutcomeUnknown, CallInDoubt):
        raise
    except PodiumError as error:
        raise ToolBroke(str(error)) from None


async def _inbox(podium: Podium, arguments: Fields, scope: ToolScope) -> Fields:
    from podium.app.inbox import see_inbox

    inbox = await see_inbox(await podium.store(), podium.clock, podium.engine)
    cards = [
        {
            "id": short_id(card.approval.id),
            "what": card.kind.value,
            "tier": str(card.approval.tier),
            "about": card.approval.summary,
            "next": f"podium approvals {short_id(card.approval.id)}",
        }
        for card in inbox.cards
    ]
    blocked = [
        {
            "id": short_id(blocked_run.run.id),
            "what": "interrupted run"
            if blocked_run.interrupted
            else f"run {blocked_run.run.status.value}",
            "tier": str(blocked_run.tier),
            "about": blocked_run.reason or blocked_run.run.task,
            "next": f"podium {'show' if blocked_run.in_doubt else 'resume'} {short_id(blocked_run.run.id)}",
        }
        for blocked_run in inbox.blocked
    ]
    return {"count": inbox.count, "waiting": [*cards, *blocked]}


async def _runs(podium: Podium, arguments: Fields, scope: ToolScope) -> Fields:
    from podium.app.run_list import list_by_status

    statuses = (arguments["status"],) if "status" in arguments else ()
    store = await podium.store()
    standings = await list_by_status(store, podium.engine, statuses, limit=MAX_ROWS)
    rows = [_row(status) for status in standings if status.run.id != scope.call.run_id]
    return {"count": len(rows), "runs": rows}


def _row(status: RunListing) -> Fields:
    run = status.run
    return {
        "run": short_id(run.id),
        "run_id": run.id,
        "status": status.shown_status,
        "flow": run.flow,
        "created": run.created_at.isoformat(),
        "task": run.task,
    }


async def _run(podium: Podium, arguments: Fields, scope: ToolScope) -> Fields:
    from podium.app.run_list import with_host_status
    from podium.app.run_report import show_run
    from podium.render.event import event_line

    store = await podium.store()
    report = await show_run(store, arguments["run_id"], last_events=MAX_EVENTS)
    (status,) = await with_host_status([report.run], podium.engine)
    pending = [approval for approval in report.approvals if approval.status == "pending"]
    run, short = report.run, short_id(report.run.id)
    return {
        "run_id": run.id,
        "status": status.shown_status,
        "flow": run.flow,
        "task": run.task,
        "created": run.created_at.isoformat(),
        "steps_done": len(report.steps),
        "in_step": ", ".join(report.in_flight),
        "usd": report.work.usage.usd,
        "waits_for": ", ".join(f"approval {short_id(approval.id)}" for approval in pending),
        "failure": run.failure.message if run.failure else "",
        "last_events": "\n".join(event_line(event) for event in report.events),
        "next": f"podium show {short}",
    }


async def _failure(podium: Podium, arguments: Fields, scope: ToolScope) -> Fields:
    from podium.app.run_list import with_host_status
    from podium.app.run_overview import see_rows
    from podium.app.run_report import show_run

    if "run_id" not in arguments:
        nothing = dict.fromkeys(("run_id", "flow", "task", "step", "failed_checks", "next"), "")
        return {**nothing, "status": "none", "reason": "no run has failed"}
    store = await podium.store()
    run = (await show_run(store, arguments["run_id"], last_events=0)).run
    (status,) = await with_host_status([run], podium.engine)
    (row,) = await see_rows(store, podium.engine, [run.id])
    failed_checks = [
        f"{result['command']}: exit {result.get('exit_code')}\n{_tail(result.get('tail', ''))}"
        for result in (row.checks.results if row.checks and not row.checks.passed else ())
    ]
    return {
        "run_id": run.id,
        "status": status.shown_status,
        "flow": run.flow,
        "task": run.task,
        "reason": _reason(status),
        "step": row.broke.step if row.broke else row.step,
        "failed_checks": "\n".join(failed_checks),
        "next": f"podium show {short_id(run.id)}",
    }


def _reason(status: RunListing) -> str:
    run = status.run
    if run.failure:
        return run.failure.message
    if status.interrupted:
        return "the process that hosted the run is gone"
    return f"the run did not fail; it is {status.shown_status}"


def _tail(text: str) -> str:
    return "\n".join(text.rstrip().splitlines()[-TAIL_LINES:])


async def _cancel(podium: Podium, arguments: Fields, scope: ToolScope) -> Fields:
    from podium.app.run_control import cancel
    from podium.app.run_report import show_run

    store, engine = await podium.store(), await podium.engine()
    before = (await show_run(store, arguments["run_id"], last_events=0)).run
    run = before
    # Asked for again after a crash, it is cancelled already, or will be.
    if not before.cancel_requested:
        run = await cancel(store, engine, before.id, by=await _asked_by(podium, scope))
    return {
        "run_id": run.id,
        "status": run.status.value if run.status.ended else "cancelling",
        "status_before": before.status.value,
        "task": run.task,
    }


async def _asked_by(podium: Podium, scope: ToolScope) -> str:
    """The person whose message led to the call."""
    from podium.app.work_request import asked_by

    run = await (await podium.store()).read(lambda view: view.run(scope.call.run_id))
    return (asked_by(run) if run else "") or podium.settings.user


async def _checks(podium: Podium, arguments: Fields, scope: ToolScope) -> Fields | CallOutcome:
    from podium.core.forge import check_ending

    report = await podium.project_checks.run_all(
        scope.call.run_id, check_seconds(podium.configuration)
    )
    checks = [
        {
            "check": result.command,
            "result": "passed" if result.passed else "failed",
            "ended": check_ending(result.model_dump()),
            "seconds": result.seconds,
        }
        for result in report.results
    ]
    fields: Fields = {
        "passed": report.passed,
        "commit": report.commit[:12],
        "uncommitted": list(report.not_tested),
        "checks": checks,
        "output": "\n".join(_tail(result.tail) for result in report.results if not result.passed),
    }
    if report.passed:
        return fields
    failed = [
        f"`{check['check']}` {check['ended']}" for check in checks if check["result"] == "failed"
    ]
    return CallOutcome(ok=False, result=fields, error=f"the checks failed: {', '.join(failed)}")


def check_seconds(configuration: Configuration) -> float:
    """Time that one check may take: that of `podium run`, which runs the same commands."""
    from podium.app.checks.check import CHECK_SECONDS
    from podium.config.flow_options import flow_options

    return flow_options(configuration, "pipeline").get("check_seconds") or CHECK_SECONDS


async def _start_task(podium: Podium, arguments: Fields, scope: ToolScope) -> Fields:
    from podium.app.work_request import WorkRequest, submit

    by = await _asked_by(podium, scope)
    request = WorkRequest(flow="pipeline", text=arguments["task"])
    run = await submit(podium, request, by=by, provenance=scope.call.provenance)
    return {
        "run_id": run.id,
        "task": run.task,
        "queue": run.queue,
        "next": f"podium logs -f {short_id(run.id)}",
    }


async def _costs(podium: Podium, arguments: Fields, scope: ToolScope) -> Fields:
    from podium.app.costs import CostWatch

    now = podium.clock.now()
    costs = await CostWatch(podium.store).look(now, (await podium.budget_tracker()).budgets)
    last = date.fromisoformat(arguments["to"]) if "to" in arguments else now.date()
    first = last - timedelta(days=DEFAULT_DAYS - 1)
    first = date.fromisoformat(arguments["from"]) if "from" in arguments else first
    days = [day for day in costs.days if first <= date.fromisoformat(day.name) <= last]
    return {
        "from": first.isoformat(),
        "to": last.isoformat(),
        "usd": round(sum(day.usd for day in days), 6),
        "tokens": sum(day.tokens for day in days),
        "unknown_cost": sum(day.unknown for day in days),
        "day_limit_usd": costs.day_limit_usd,
        "days": [
            {"day": day.name, "usd": day.usd, "tokens": day.tokens} for day in days if day.records
        ],
        "agents": [
            {"agent": source.name, "usd": source.usd, "tokens": source.tokens}
            for source in costs.sources
        ],
    }


async def _status(podium: Podium, arguments: Fields, scope: ToolScope) -> Fields:
    from podium.app.inbox import see_inbox
    from podium.app.work_request import queues_of
    from podium.app.workload import WorkWatch

    store = await podium.store()
    workload = await WorkWatch(store, podium.engine, queues_of(podium.configuration)).look()
    inbox = await see_inbox(store, podium.clock, podium.engine)
    runs = [run for run in workload.runs if run.run_id != scope.call.run_id]
    workers = [worker for worker in workload.workers if worker.alive and worker.beat]
    return {
        "mode": str(podium.settings.mode),
        "agents": sorted(podium.settings.agents),
        "running": len(runs),
        "waiting_for_people": inbox.count,
        "workers": sum(bool(worker.beat and worker.beat.queues) for worker in workers),
        "queues": [
            {"queue": queue.name, "queued": queue.tally.queued, "running": queue.tally.running}
            for queue in workload.queues
        ],
        "runs": [
            {"run": short_id(run.run_id), "flow": run.flow, "step": run.step, "task": run.task}
            for run in runs
        ],
    }


SERVICES: Mapping[str, Service] = {
    "inbox": _inbox,
    "runs": _runs,
    "run": _run,
    "failure": _failure,
    "cancel": _cancel,
    "checks": _checks,
    "start_task": _start_task,
    "costs": _costs,
    "status": _status,
}
"""Name in a registry → the service."""
