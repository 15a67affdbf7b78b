"""Text of events, one line each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from textwrap import fill

from podium.core import events as e
from podium.core.decisions import Usage, canonical_json
from podium.core.forge import check_ending
from podium.core.ids import short_id
from podium.core.job import job_of_event, load
from podium.core.model import Json
from podium.core.run_cost import CostMeter
from podium.core.turns import TurnStop
from podium.core.work import AGENT_LOST, RATE_LIMIT
from podium.render.approval import arguments_line, summary_line
from podium.render.event_view import EventView, Outcome
from podium.render.text import escaped_line, safe_line

MAX_ARGUMENTS = 200
_MAX_CACHED_TYPES = 1000

TO_ACT_ON = (e.RunNeededHuman, e.RunWaiting, e.RunFailed, e.ApprovalRequested)
"""Events that name what a person has to type next."""

_ID = re.compile(r"\b((?:run|apr|wrk|sig)_[0-9a-f]{32})\b")


def event_line(event: e.Event, longest: int = 0) -> str:
    """One event on one line: time, number, type and what matters of it.

    Cut to `longest` characters when that is given; but what names something to act on is folded.
    """
    at = event.at.astimezone().strftime("%H:%M:%S")
    text = safe_line(describe(event.body))
    line = f"{at} {event.seq:>4} {event.body.type:<22} {text}".rstrip()
    if not longest or len(line) <= longest:
        return line
    if isinstance(event.body, TO_ACT_ON):
        return fill(line, longest, subsequent_indent=" " * 14, break_on_hyphens=False)
    return line[: longest - 1] + "…"


_GOOD = ("run_succeeded", "branch_delivered", "approval_granted")
_BAD = ("run_failed", "run_cancelled", "step_broke", "tool_failed", "tool_in_doubt")
_WAIT = ("run_waiting", "run_needed_human", "approval_requested", "run_parked")
_OUTCOMES: dict[str, Outcome] = {
    **dict.fromkeys(_GOOD, "good"),
    **dict.fromkeys(_BAD, "bad"),
    **dict.fromkeys(_WAIT, "wait"),
}


def view_event(body: e.EventBody) -> EventView:
    """View an event: one of a job as its job shows it, one of an unknown type with all its fields."""
    if isinstance(body, e.UnknownEvent):
        return EventView(f"unknown type: {_fields(body)}")
    if (view_of_job := _view_of_job(body.type)) is None:
        return EventView(_kernel_text(body) or _fields(body), _kernel_outcome(body))
    view = view_of_job(body)
    return view if view.text else view._replace(text=_fields(body))


def describe(body: e.EventBody) -> str:
    """Describe an event on one line."""
    return view_event(body).text


@lru_cache(_MAX_CACHED_TYPES)
def _view_of_job(name: str) -> Callable[[e.EventBody], EventView] | None:
    """The job's function that shows its type of event. None: the kernel does."""
    job = None if name in e.KERNEL_EVENTS else job_of_event(name)
    if job is None:
        return None
    return load(job.event_view) if job.event_view else lambda body: EventView("")


def _kernel_outcome(body: e.EventBody) -> Outcome:
    match body:
        case e.ChecksRan(passed=passed):
            return "good" if passed else "bad"
        case e.ToolRefused(effect=effect):
            return "bad" if effect == "deny" else "wait"
    return _OUTCOMES.get(body.type, "plain")


def _kernel_text(body: e.EventBody) -> str:
    """Describe an event of the kernel. Empty: its fields say it."""
    match body:
        case e.RunQueued():
            return f"{body.flow} v{body.flow_version} {body.task!r}" if body.task else body.flow
        case e.RunWaiting() if body.signal.startswith(RATE_LIMIT) and body.deadline:
            when = f"{body.deadline.astimezone():%H:%M}"
            return f"rate limited until {when}, waiting; Ctrl-C leaves it resumable"
        case e.RunWaiting() if body.signal.startswith(AGENT_LOST) and body.deadline:
            when = f"{body.deadline.astimezone():%H:%M:%S}"
            return f"the agent is asked again at {when}; Ctrl-C leaves it resumable"
        case e.RunWaiting():
            until = f" until {body.deadline:%Y-%m-%d %H:%M:%S}Z" if body.deadline else ""
            return f"for {shorten(body.signal)}{until}"
        case e.RunSucceeded(result=result) if result is not None:
            return f"result={escaped_line(canonical_json(result), MAX_ARGUMENTS)}"
        case e.RunFailed():
            return f"{body.failure.kind}: {body.failure.message}"
        case e.RunParked() | e.RunNeededHuman():
            # Not shortened: such a reason names keys and commands to be typed again.
            return body.reason
        case e.RunPinned():
            return f"to host {escaped_line(body.host)}, which holds its workspace"
        case e.RunUnpinned():
            return f"{escaped_line(body.reason)}; any other host may continue it"
        case e.StepCompleted():
            return f"{body.step} ({body.seconds:.1f} s)"
        case e.StepBroke():
            again = "" if body.final else "; will be retried"
            return f"{body.step}: {body.failure.kind}: {body.failure.message}{again}"
        case e.ToolRequested():
            arguments_text = arguments_line(body.arguments, MAX_ARGUMENTS)
            return f"{body.tool} {arguments_text} [{body.tier}, {body.rule}]"
        case e.ToolRefused():
            arguments_text = arguments_line(body.arguments, MAX_ARGUMENTS)
            return f"{body.tool} {arguments_text} [{body.effect}: {escaped_line(body.reason)}]"
        case e.ToolCompleted():
            return f"{body.tool} ({body.seconds:.1f} s), receipt {body.receipt}"
        case e.ToolFailed():
            return f"{body.tool}: {body.error}, receipt {body.receipt}"
        case e.ApprovalRequested():
            return f"{shorten(body.approval_id)} [{body.tier}] {summary_line(body.summary)}"
        case e.AgentAsked():
            return f"{body.role} ({body.agent}): {body.prompt}"
        case e.AgentReplied():
            return f"{body.role} ({body.agent}): {body.text}"
        case e.AgentProgressed():
            return f"{body.role} ({body.agent}) {body.kind}: {body.text}"
        case e.WorkspaceChecked():
            return _checked(body)
        case e.AgentSwitched():
            return f"{body.role}: {body.next_agent} instead of {body.agent}: {body.reason}"
        case e.UsageRecorded():
            return f"{body.source}: {usage_text(body.usage)}"
        case e.ModelAnswered():
            return _answered(body)
        case e.AgentStopped():
            return f"{body.role} ({body.agent}): {stop_text(body.stop)}"
        case e.NoteTaken():
            return body.text
        case e.BranchCollision():
            return f"{body.branch} and {body.other_branch} conflict in {', '.join(body.paths[:5])}"
        case e.ChecksRan():
            ran = ", ".join(
                f"{result.get('command')} {check_ending(result)}" for result in body.results
            )
            return f"{'passed' if body.passed else 'FAILED'} on {body.commit[:12]}: {ran or 'none'}"
        case e.BranchDelivered():
            untested = f"UNTESTED ({body.untested}) " if body.untested else ""
            return f"{body.branch} at {body.commit[:12]} {untested}{body.url or body.file}".rstrip()
    return _short_text(body)


def _short_text(body: e.EventBody) -> str:
    """The same of events that need a few words only."""
    match body:
        case e.RunSucceeded():
            return "without a result"
        case e.RunCancelled():
            return "all its processes have ended"
        case e.StepStarted():
            return body.step if body.attempt == 1 else f"{body.step} attempt {body.attempt}"
        case e.SignalReceived() | e.WaitExpired():
            return f"{shorten(body.name)} in {shorten(body.step)}"
        case e.ChildStarted():
            return f"{body.flow} as run {shorten(body.child_id)}"
        case e.ToolInDoubt():
            return f"{body.tool} may or may not have happened; a person must resolve it: {shorten(body.call)}"
        case e.ToolAbandoned(rolled_back=True):
            return f"{body.tool} was rolled back with its workspace: {shorten(body.call)}"
        case e.ToolAbandoned():
            return f"{body.tool} was abandoned with its turn: {shorten(body.call)}"
        case e.ToolResolved():
            detail = "it happened" if body.happened else "it did not happen"
            return f"{body.by} recorded that {detail}: {shorten(body.call)}"
        case e.ApprovalGranted():
            more = "" if body.complete else "; more approvals are needed"
            detail = f": {body.said}" if body.said else ""
            how = f" ({body.authentication})" if body.authentication else ""
            return f"{shorten(body.approval_id)} by {body.by}{how}{more}{detail}"
        case e.ApprovalRejected():
            why = f": {body.why}" if body.why else ""
            how = f" ({body.authentication})" if body.authentication else ""
            return f"{shorten(body.approval_id)} by {body.by}{how}{why}"
        case e.ApprovalExpired():
            return f"{shorten(body.approval_id)}: {body.why or 'nobody answered in time'}"
        case e.ApprovalConsumed():
            return f"{shorten(body.approval_id)} for receipt {body.receipt}"
    return ""


def _answered(body: e.ModelAnswered) -> str:
    """Describe an answer: agent, calls and cost. The text comes last, since it is cut."""
    answer = body.answer
    calls = ", ".join(call.tool for call in answer.calls)
    calls_text = f" asks for {calls}" if calls else ""
    model = f" {answer.model}" if answer.model else ""
    text = f": {answer.text}" if answer.text else ""
    used = tokens_text(answer.usage.input_tokens, answer.usage.output_tokens)
    return f"{body.role} ({body.agent}){model} #{answer.number}{calls_text} [{used}]{text}"


def stop_text(stop: TurnStop) -> str:
    """Describe the limit that ended a turn."""
    return f"stopped at the limit of {stop.kind.replace('_', ' ')}: {stop.reason}"


def tokens_text(read: int, written: int) -> str:
    """Describe tokens: those that models read, and those that they wrote."""
    return f"{read:,} tokens in, {written:,} out"


def usage_text(used: Usage) -> str:
    """Describe usage on one line."""
    incomplete_note = "" if used.complete else ", incomplete"
    tokens = tokens_text(used.input_tokens, used.output_tokens)
    return f"{tokens}, ${used.usd:.4f}, {used.seconds:.1f} s{incomplete_note}"


def meter_text(meter: CostMeter) -> str:
    """Describe the cost of a run so far, for the line beneath its progress; empty while it cost nothing."""
    used = meter.usage
    if not (used.input_tokens or used.output_tokens or used.usd):
        return ""
    incomplete_note = "" if used.complete else " or more"
    tokens = tokens_text(used.input_tokens, used.output_tokens)
    return f"{tokens}, ${used.usd:.4f}{incomplete_note}"


def _checked(body: e.WorkspaceChecked) -> str:
    """Describe what a turn left of the repository around its workspace."""
    changes = [
        *(
            f"changed {violation.what}" + (", put back" if violation.restored else "")
            for violation in body.violations
        ),
        *(f"moved away {path}" for path in body.moved_away),
        *(f"meanwhile {what}" for what in body.changed_meanwhile),
    ]
    return f"{shorten(body.workspace)}: {escaped_line('; '.join(changes)) or 'nothing else was changed'}"


def about(arguments: Mapping[str, Json]) -> str:
    """Summarize a call in a word or two: the path, the command, the message."""
    values = (arguments.get(name) for name in ("path", "command", "message"))
    return escaped_line(next((str(value) for value in values if value not in (None, ".")), ""))


def shorten(text: str) -> str:
    """The text with whole ids made short, as people type them. JSON keeps them whole."""
    return _ID.sub(lambda match: short_id(match[1]), text)


def _fields(body: e.EventBody) -> str:
    data = body.model_dump(mode="json", exclude={"type", "version"}, exclude_defaults=True)
    return " ".join(f"{name}={_value(value)}" for name, value in data.items())


def _value(value: Json) -> str:
    return shorten(value if isinstance(value, str) else canonical_json(value))
