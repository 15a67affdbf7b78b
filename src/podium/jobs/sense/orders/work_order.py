"""Work orders: a closed set of operations and their tools, the order as YAML, its edits by a person, and its answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from podium.core.decisions import Approval, Tier, digest_of
from podium.core.errors import BadInput
from podium.core.model import FrozenModel, Json, NonEmpty, UtcDatetime
from podium.core.plan_approval import PlannedCall
from podium.render.text import escaped_text

if TYPE_CHECKING:
    import yaml


ORDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
"""Allowed ids of an order. They become file names, so they hold nothing that has a meaning in a path."""
MAX_OPS = 100
MAX_OUTPUT = 2_000
"""Characters of what a program said that an answer carries."""


def _checked_id(text: str) -> str:
    if not ORDER_ID.fullmatch(text):
        raise ValueError(
            f"{text[:120]!r} is not an id; use at most 100 letters, digits, `-` and `_`, starting with a letter or digit"
        )
    return text


def _checked_path(text: str) -> str:
    if any(char < " " or char == "\x7f" for char in text):
        raise ValueError(f"{text[:120]!r} contains a control character; remove it")
    return text


def _tier_named(value: Json) -> Json:
    if isinstance(value, str):
        if value not in Tier.__members__:
            raise ValueError(f"{value!r} is not a tier; use one of {', '.join(Tier.__members__)}")
        return Tier[value]
    return value


OrderId = Annotated[str, AfterValidator(_checked_id)]
TierName = Annotated[Tier, BeforeValidator(_tier_named), PlainSerializer(str)]
Path = Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_checked_path)]
Text = Annotated[str, Field(max_length=500_000)]

OpName = Literal["write", "edit", "append", "mkdir", "move", "copy", "trash", "run", "session", "tool"]  # fmt: skip


class Operation(FrozenModel):
    """One thing to do. Which fields it has follows from `op`."""

    op: OpName
    path: Path | None = None
    """From the root on."""
    to: Path | None = None
    """With move and copy: the new place."""
    content: Text | None = None
    find: Annotated[str, Field(min_length=1, max_length=100_000)] | None = None
    """With edit: the text that stands there exactly once."""
    replace: Text | None = None
    command: str | tuple[str, ...] | None = None
    """A shell line of plain commands, or a program with its words."""
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] | None = None
    session: OrderId | None = None
    """With session: its name, such as `SESSION-DEMO-001`."""
    values: dict[str, Json] | None = None
    """With session: keys and what they become."""
    tool: NonEmpty | None = None
    arguments: dict[str, Json] | None = None
    why: str = ""
    """Purpose, in words. Changes nothing."""

    @model_validator(mode="after")
    def _has_its_fields(self) -> Operation:
        needed, allowed = FIELDS[self.op]
        present = self.model_fields_set - {"op", "why"}
        present = {name for name in present if getattr(self, name) is not None}
        if missing := [name for name in needed if name not in present]:
            raise ValueError(f"op {self.op!r} needs {', '.join(missing)}")
        if beyond := sorted(present - {*needed, *allowed}):
            raise ValueError(f"op {self.op!r} does not take {', '.join(beyond)}")
        return self

    @property
    def call(self) -> tuple[str, dict[str, Json]]:
        """The registered tool that performs it, and its arguments."""
        return _call_of(self)

    @property
    def line(self) -> str:
        """Description of the operation on one line."""
        what = self.path or self.session or self.tool or self.command or ""
        subject = what if isinstance(what, str) else " ".join(what)
        to = f" to {self.to}" if self.to else ""
        return f"{self.op} {subject}{to}"


FIELDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "write": (("path", "content"), ()),
    "edit": (("path", "find", "replace"), ()),
    "append": (("path", "content"), ()),
    "mkdir": (("path",), ()),
    "move": (("path", "to"), ()),
    "copy": (("path", "to"), ()),
    "trash": (("path",), ()),
    "run": (("command",), ("timeout_seconds",)),
    "session": (("session", "values"), ()),
    "tool": (("tool",), ("arguments",)),
}
"""Operation → fields it must have, and may have."""

OP_TOOLS: Mapping[str, str] = {
    "write": "write_file",
    "edit": "replace_in_file",
    "append": "append_to_file",
    "mkdir": "make_folder",
    "move": "move_file",
    "copy": "copy_file",
    "trash": "trash_file",
    "run": "run_command",
    "session": "set_session",
}
"""Operation → the registered tool that performs it; `tool` names its own."""


def _call_of(op: Operation) -> tuple[str, dict[str, Json]]:
    if op.op == "tool":
        return op.tool or "", dict(op.arguments or {})
    needed, allowed = FIELDS[op.op]
    fields = {name: getattr(op, name) for name in (*needed, *allowed)}
    arguments = {name: value for name, value in fields.items() if value is not None}
    if isinstance(op.command, tuple):
        arguments["command"] = list(op.command)
    return OP_TOOLS[op.op], arguments


class WorkOrder(FrozenModel):
    """Work order: a task as a list of operations, with the tier that they require."""

    id: OrderId
    title: Annotated[str, Field(min_length=1, max_length=300)]
    summary: Annotated[str, Field(max_length=10_000)] = ""
    type: str = ""
    target: str = ""
    priority: Literal["low", "medium", "high"] = "medium"
    tier: TierName | None = None
    """Tier of its operations together, as computed when it was made. The worker computes it anew."""
    zones: tuple[str, ...] = ()
    """Zones its operations act in, as computed then."""
    provenance: tuple[str, ...] = ()
    """Origin of the order: the planner, and the sources it read."""
    created_at: UtcDatetime | None = None
    tasks: Annotated[tuple[Annotated[str, Field(max_length=4_000)], ...], Field(max_length=MAX_OPS)] = ()  # fmt: skip
    """The work in words, where nobody has made operations of it yet."""
    ops: Annotated[tuple[Operation, ...], Field(max_length=MAX_OPS)] = ()
    delivered_by: str = ""
    """Id of the run that put it into the inbox. A yes that was given there holds for its operations."""

    @cached_property
    def content_hash(self) -> str:
        """Digest of what is done: what an approval of the order is bound to."""
        ops = [op.model_dump(mode="json", exclude_defaults=True) for op in self.ops]
        return digest_of({"id": self.id, "target": self.target, "tasks": self.tasks, "ops": ops})


class OrderJob(FrozenModel):
    """Input of a run that performs an order."""

    claim: NonEmpty
    """Name of the claimed file."""
    file: NonEmpty
    """Name under which it lay in the inbox."""
    order: WorkOrder | None = None
    """With a `fault` no more than its id and its title: whom to answer."""
    fault: str = ""
    """Reason why it cannot be done as it stands in the file."""
    root: str = ""


OpStatus = Literal["done", "failed", "refused", "skipped"]


class OpResult(FrozenModel):
    """Result of one operation."""

    number: int
    """From 1."""
    op: str
    status: OpStatus
    receipt: int | None = None
    fields: dict[str, Json] = Field(default_factory=dict)
    """Of its receipt."""
    output: Annotated[str, Field(max_length=MAX_OUTPUT)] = ""
    """With run: the end of what the program said, on standard output and then on standard error."""
    error: str = ""


AckStatus = Literal["done", "failed", "refused", "parked", "duplicate", "waiting"]


class Ack(FrozenModel):
    """Answer of the worker to an order, for its sender and for the next tick."""

    wo_id: str
    status: AckStatus
    title: str = ""
    target: str = ""
    error: str = ""
    run_id: str = ""
    worker: str = ""
    """Id of the worker that answered."""
    ops: tuple[OpResult, ...] = ()
    tries: int = 1
    finished_at: UtcDatetime


class Claim(FrozenModel):
    """File that one worker claimed from the inbox, in a single rename."""

    name: str
    """Of the claimed file; says run and worker."""
    file: str
    """Name under which it lay in the inbox."""
    run_id: str
    """Of the run that performs it, fixed before the rename."""
    worker: str


class OpenedOrder(FrozenModel):
    """Content of a claimed file."""

    order: WorkOrder | None = None
    fault: str = ""
    """Reason why it is not a valid order, for its sender."""


def order_text(order: WorkOrder) -> str:
    """Dump the order as YAML: deterministic, in the order of its fields, without unset ones."""
    # PyYAML takes a while to load, and most commands write no orders.
    import yaml

    record = order.model_dump(mode="json", exclude_defaults=True)
    return str(
        yaml.safe_dump(_plain(record), sort_keys=False, allow_unicode=True, width=100, indent=2)
    )


def _plain(value: Json) -> Json:
    """YAML has lists and no tuples."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def planned_call(run_input: Json, order_hash: str, number: int) -> PlannedCall | None:
    """Call of this number, if this input of a run is the order of this hash."""
    try:
        order = OrderJob.model_validate(run_input).order
    except ValidationError:
        return None
    if order is None or order.content_hash != order_hash or not 0 < number <= len(order.ops):
        return None
    tool, arguments = order.ops[number - 1].call
    return PlannedCall(number=number, tool=tool, arguments=arguments)


OF_PODIUM = ("id", "tier", "zones", "provenance", "created_at", "delivered_by")
"""Fields of an order that nobody writes by hand."""
MAX_ID = 100
_EDITION = re.compile(r"-R(\d{1,6})$")


def order_in(approval: Approval) -> WorkOrder | None:
    """The work order that an approval hands over; None when it is not as it was written."""
    try:
        return WorkOrder.model_validate(_parsed_yaml(str(approval.arguments.get("content", ""))))
    except (BadInput, ValidationError):
        return None


def asked_order(approval: Approval) -> WorkOrder:
    """Return the work order that an approval hands over. Raises `BadInput` where there is none."""
    if (order := order_in(approval)) is None:
        raise BadInput(f"approval {approval.id} has no readable order; reject it")
    return order


def editable_text(order: WorkOrder) -> str:
    """Return the editable fields of an order as YAML."""
    record = order.model_dump(mode="json", exclude_defaults=True, exclude=set(OF_PODIUM))
    plain = _dumped(record, unicode=True)
    # What cannot be seen is written in YAML's own way, and means the same.
    return plain if escaped_text(plain) == plain else _dumped(record, unicode=False)


def edited_order(asked: WorkOrder, text: str) -> WorkOrder:
    """The order as it was changed, under the next id: one id is delivered once. Raises `BadInput`."""
    fields = _parsed_yaml(text)
    if not isinstance(fields, dict):
        raise BadInput("the order is not a YAML mapping; write `title:`, `ops:` and so on")
    if taken := [name for name in OF_PODIUM if name in fields]:
        raise BadInput(f"only Podium sets {', '.join(taken)} of an order; remove what you set")
    own = asked.model_dump(mode="json", exclude_defaults=True)
    unchanged = {name: own[name] for name in ("provenance", "created_at") if name in own}
    try:
        order = WorkOrder.model_validate({**fields, **unchanged, "id": _next_id(asked.id)})
    except ValidationError as error:
        raise BadInput(f"the order is not valid: {_problems_text(error)}") from None
    if order.model_copy(update={name: getattr(asked, name) for name in OF_PODIUM}) == asked:
        raise BadInput("nothing was changed; approve it as it is, or change something")
    return order


def _next_id(order_id: str) -> str:
    match = _EDITION.search(order_id)
    ending = f"-R{int(match[1]) + 1 if match else 2}"
    return _EDITION.sub("", order_id)[: MAX_ID - len(ending)] + ending


def _parsed_yaml(text: str) -> Json:
    from podium.jobs.sense.io.plain_yaml import NotPlain, parse_plain

    try:
        return parse_plain(text.encode(errors="surrogatepass"))
    except NotPlain as error:
        raise BadInput(f"the order cannot be read: {error}") from None


def _dumped(record: Json, *, unicode: bool) -> str:
    """Dump as YAML, with texts of several lines as blocks."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_representer(str, _represented)
    return yaml.dump(
        record, Dumper=Dumper, sort_keys=False, width=100, indent=2, allow_unicode=unicode
    )


def _represented(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _problems_text(error: ValidationError) -> str:
    messages = (
        f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors()
    )
    return "; ".join(messages)[:1000]
