"""Forms by which a run of any flow is started, made of what the flow may be told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from podium.domain.errors import BadInput
from podium.domain.model import Json, Noun
from podium.web.pages.run_choices import Choices
from podium.wiring.submitting import Wish, option_schemas
from podium.wiring.wishes import SHAPES

OPTION = "option_"
"""How the names of fields begin that are options of a flow."""
APPROVE = "approve"
"""The option by which whoever starts a run says yes to its plan."""
TEXTS = {
    "pipeline": "The task: what is to be built or mended",
    "operator": "The message to the operator",
    "sense": "",
    "playbook": "The playbook: a file of the project",
    "duet": "The task for the two",
}
"""Flow → what its text is. Empty: it takes none."""

UNSAID = {
    ("pipeline", "agent"): "as the roles say",
    ("playbook", "agent"): "as podium.yaml says",
    ("operator", "pack"): "as podium.yaml says",
}
"""What it means to say nothing, where that can be done."""

Kind = Literal["text", "tick", "lines", "pairs", "choice", "several"]


class Field(Noun):
    """One option, as a field of a form."""

    name: str
    label: str
    hint: str
    kind: Kind
    default: str = ""
    choices: tuple[str, ...] = ()
    """For one of them, or several."""
    unsaid: str = ""
    """What it means to say nothing; empty: something has to be chosen."""


class StartForm(Noun):
    """How a flow is started."""

    flow: str
    text: str
    """What its words are; empty: there are none."""
    fields: tuple[Field, ...] = ()


def start_forms(choices: Choices, *, may_approve: bool) -> list[StartForm]:
    """A form for each flow, with what the project has to choose from. A yes to a plan is offered to those alone who may give one."""
    return [
        StartForm(
            flow=flow,
            text=TEXTS.get(flow, "The task"),
            fields=tuple(
                _with_choices(flow, field, choices)
                for field in _fields(flow, schema)
                if may_approve or field.name != APPROVE
            ),
        )
        for flow, schema in option_schemas().items()
    ]


def wish_of(form: Mapping[str, str]) -> Wish:
    """What a filled form wishes for. Raises `BadInput` that names the field."""
    flow = form.get("flow", "")
    schema = option_schemas().get(flow)
    if schema is None:
        raise BadInput(f"flow {flow[:60]!r} is not known; flows: {', '.join(option_schemas())}")
    options: dict[str, Json] = {}
    for field in _fields(flow, schema):
        written = form.get(f"{OPTION}{field.name}", "").strip()
        if written:
            options[field.name] = _value(field, written)
    return Wish.model_validate({"flow": flow, "text": form.get("text", ""), "options": options})


def _fields(flow: str, schema: Mapping[str, Json]) -> list[Field]:
    shape = SHAPES[flow]
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
    """Chosen instead of written, where it is known what there is."""
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
        raise BadInput(f"{field.label}: {line[:60]!r} is no NAME=VALUE; write one on each line")
    try:
        # Numbers and lists as JSON has them; everything else is words.
        return name.strip(), json.loads(value) if field.name == "context" else value.strip()
    except ValueError:
        return name.strip(), value.strip()


_HINTS = {
    ("pipeline", "mode"): "Where it begins: direct, bugfix or research.",
    ("pipeline", "agent"): "The agent that plays every role.",
    ("pipeline", "base"): "The branch to start from. Empty: the one that is checked out.",
    ("operator", "context"): "What is known already: NAME=VALUE, one on each line.",
    ("operator", "pack"): "The tools that it may use.",
    ("operator", "approve"): "Say yes to the very plan that comes of it, this once.",
    ("playbook", "profile"): "The plugin's profile. Empty: the nearest one.",
    ("playbook", "root"): "The plugin's folder. Empty: the project's.",
    ("playbook", "agent"): "The agent that follows it.",
    ("playbook", "inputs"): "Values of the playbook's inputs: NAME=VALUE, one on each line.",
    ("playbook", "dry_run"): "Work in a copy that is thrown away, and show what would change.",
    ("duet", "pairs"): "Pairs that may do it. None of them: every pair.",
}
"""What a field is for, in words of a form."""
