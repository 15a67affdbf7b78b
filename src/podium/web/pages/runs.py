"""Page of runs, and the form that starts one of any flow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse, Response

from podium.app.app import Podium
from podium.app.flow_registry import flow_builders
from podium.app.run_list import ShownStatus
from podium.app.run_overview import RunFilter, RunsPage, see_runs
from podium.app.work_request import WorkRequest, option_schemas, request_model, submit
from podium.core.errors import BadInput, PodiumError
from podium.core.job import job_of_flow, load_parts
from podium.core.model import FrozenModel, Json
from podium.web.access.authentication import Operator, Viewer
from podium.web.access.tokens import ConsoleRole
from podium.web.context import CurrentContext
from podium.web.pages.run_display import evidence, status_text, tone
from podium.web.pages.templates import page

Choices = Mapping[tuple[str, str], tuple[str, ...]]
"""Flow and option → possible values. An option not listed takes free text."""


def choices_of(podium: Podium) -> Choices:
    """Return the values that options of this project's jobs can have, such as modes, agents, packs and pairs."""
    choices: dict[tuple[str, str], tuple[str, ...]] = {}
    for job, choices_in in load_parts("choices"):
        # An invalid part of podium.yaml is reported when a run is started.
        with suppress(PodiumError):
            for option, values in choices_in(podium).items():
                choices[job.name, option] = tuple(values)
    return {option: values for option, values in choices.items() if values}


OPTION = "option_"
"""Prefix of form fields that are options of a flow."""
APPROVE = "approve"
"""Option by which the person who starts a run approves its plan."""
UNSAID = {
    ("pipeline", "agent"): "as the roles define",
    ("playbook", "agent"): "as in podium.yaml",
    ("operator", "pack"): "as in podium.yaml",
}
"""Meaning of an empty option, where one is allowed."""


def _text_label(flow: str) -> str:
    job = job_of_flow(flow)
    return job.request_label if job else "Task"


Kind = Literal["text", "tick", "lines", "pairs", "choice", "several"]


class Field(FrozenModel):
    """One option as a form field."""

    name: str
    label: str
    hint: str
    kind: Kind
    default: str = ""
    choices: tuple[str, ...] = ()
    """Values of a `choice` or `several` field."""
    unsaid: str = ""
    """Meaning of an empty field; empty when a choice is required."""


class StartForm(FrozenModel):
    """Form that starts a flow."""

    flow: str
    text: str
    """Label of its text; empty when it takes none."""
    fields: tuple[Field, ...] = ()


def start_forms(choices: Choices, *, may_approve: bool) -> list[StartForm]:
    """Build a form for each flow with the project's choices. Approving a plan is offered only to approvers."""
    return [
        StartForm(
            flow=flow,
            text=_text_label(flow),
            fields=tuple(
                _with_choices(flow, field, choices)
                for field in _fields(flow, schema)
                if may_approve or field.name != APPROVE
            ),
        )
        for flow, schema in option_schemas().items()
    ]


def work_request(form: Mapping[str, str]) -> WorkRequest:
    """Build the work request of a filled form. Raises `BadInput` that names the field."""
    flow = form.get("flow", "")
    schema = option_schemas().get(flow)
    if schema is None:
        raise BadInput(f"unknown flow {flow[:60]!r}; flows: {', '.join(option_schemas())}")
    options: dict[str, Json] = {}
    for field in _fields(flow, schema):
        written = form.get(f"{OPTION}{field.name}", "").strip()
        if written:
            options[field.name] = _value(field, written)
    return WorkRequest.model_validate(
        {"flow": flow, "text": form.get("text", ""), "options": options}
    )


def _fields(flow: str, schema: Mapping[str, Json]) -> list[Field]:
    shape = request_model(flow)
    hints = {name: (info.description or "") for name, info in shape.model_fields.items()}
    return [
        Field(
            name=name,
            label=name.replace("_", " ").capitalize(),
            hint=hints.get(name, "") or _HINTS.get((flow, name), ""),
            kind=_kind(facts),
            default=str(facts["default"]) if isinstance(facts.get("default"), str) else "",
            unsaid=UNSAID.get((flow, name), ""),
        )
        for name, facts in dict(schema.get("properties") or {}).items()
    ]


def _with_choices(flow: str, field: Field, choices: Choices) -> Field:
    """Turn the field into a choice where the values are known."""
    values = choices.get((flow, field.name), ())
    if not values:
        return field
    kind = "several" if field.kind == "lines" else "choice"
    return field.model_copy(update={"kind": kind, "choices": values})


def _kind(facts: Mapping[str, Json]) -> Kind:
    kinds: dict[str, Kind] = {"boolean": "tick", "array": "lines", "object": "pairs"}
    return kinds.get(str(facts.get("type")), "text")


def _value(field: Field, written: str) -> Json:
    match field.kind:
        case "tick":
            return True
        case "lines":
            return [line.strip() for line in written.splitlines() if line.strip()]
        case "pairs":
            return dict(_pair(field, line) for line in written.splitlines() if line.strip())
    return written


def _pair(field: Field, line: str) -> tuple[str, Json]:
    name, equals, value = line.partition("=")
    if not equals:
        raise BadInput(f"{field.label}: {line[:60]!r} is not NAME=VALUE; write one per line")
    try:
        # Numbers and lists as JSON has them; everything else is words.
        return name.strip(), json.loads(value) if field.name == "context" else value.strip()
    except ValueError:
        return name.strip(), value.strip()


_HINTS = {
    ("pipeline", "mode"): "Starting mode: direct, bugfix or research.",
    ("pipeline", "agent"): "Agent to use for every role.",
    ("pipeline", "base"): "Branch to start from. Empty: the current branch.",
    ("operator", "context"): "Known facts: NAME=VALUE, one per line.",
    ("operator", "pack"): "Pack with the tools to use.",
    ("operator", "approve"): "Approve the resulting plan in advance, once.",
    ("playbook", "profile"): "Plugin profile. Empty: the nearest one.",
    ("playbook", "root"): "Plugin folder. Empty: the project's.",
    ("playbook", "agent"): "Agent that follows the playbook.",
    ("playbook", "inputs"): "Values of the playbook's inputs: NAME=VALUE, one per line.",
    ("playbook", "dry_run"): "Work in a temporary copy and show what would change.",
    ("duet", "pairs"): "Pairs that may take the task. None selected: any pair.",
}
"""Hints shown beside the fields."""


router = APIRouter()

Filter = Annotated[str, Query(max_length=200)]


def _runs_query(
    status: Filter = "", flow: Filter = "", text: Filter = "", before: Filter = ""
) -> RunFilter:
    if status and status not in list(ShownStatus):
        raise BadInput(f"unknown status {status[:60]!r}; choose one of {', '.join(ShownStatus)}")
    return RunFilter(status=status, flow=flow, text=text.strip(), before=before)


RunFilters = Annotated[RunFilter, Depends(_runs_query)]


@router.get("/runs")
async def runs_page(
    request: Request,
    context: CurrentContext,
    person: Viewer,
    query: RunFilters,
) -> Response:
    listed = await see_runs(await context.store(), context.podium.engine, query)
    asked = _asked(query)
    return page(
        request,
        "runs.html",
        found=listed,
        wish=query,
        states=list(ShownStatus),
        flows=sorted({*flow_builders(), *([query.flow] if query.flow else [])}),
        older=_older(listed, query),
        further=_older(listed, query, "/runs/further"),
        newest=_address("/runs", **asked) if query.before else "",
        live=urlencode({**asked, "before": query.before}),
        filtered=any(asked.values()),
        may_start=person.may(ConsoleRole.OPERATOR),
        forms=start_forms(choices_of(context.podium), may_approve=person.may(ConsoleRole.APPROVER)),
        evidence=evidence,
        tone=tone,
        status_text=status_text,
    )


@router.get("/runs/further")
async def further_runs(
    request: Request,
    context: CurrentContext,
    person: Viewer,
    query: RunFilters,
) -> Response:
    """Render the next page of older runs, for an open page."""
    listed = await see_runs(await context.store(), context.podium.engine, query)
    return page(
        request,
        "runs_further.html",
        found=listed,
        older=_older(listed, query),
        further=_older(listed, query, "/runs/further"),
        evidence=evidence,
        tone=tone,
        status_text=status_text,
    )


@router.post("/runs")
async def start_run(request: Request, context: CurrentContext, person: Operator) -> Response:
    form = await request.form()
    # Several ticks of one name are as many lines.
    filled = {
        name: "\n".join(value for value in form.getlist(name) if isinstance(value, str))
        for name in form
    }
    may_approve = person.may(ConsoleRole.APPROVER)
    run = await submit(
        context.podium,
        work_request(filled),
        by=person.name,
        may_approve=may_approve,
        approver=person.approver,
    )
    path = f"/runs/{run.id}"
    if "hx-request" in request.headers:
        # What was typed stays where it is when it was wrong; when it was right the page goes on.
        return Response(headers={"hx-redirect": path})
    return RedirectResponse(path, status_code=303)


def _asked(query: RunFilter) -> dict[str, str]:
    return {"status": query.status, "flow": query.flow, "text": query.text}


def _older(listed: RunsPage, query: RunFilter, path: str = "/runs") -> str:
    """Return the URL of older matching runs; empty when there are none."""
    before = listed.next_before
    return _address(path, **_asked(query), before=before) if before else ""


def _address(path: str, **asked: str) -> str:
    parameters = urlencode({name: value for name, value in asked.items() if value})
    return f"{path}?{parameters}" if parameters else path
