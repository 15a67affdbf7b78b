"""The five ways in which a tool of a pack is performed, as its registry writes them, and the context of a pack's own code."""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from podium.core.model import FrozenModel, Json, NonEmpty
from podium.core.packs import Pack

_FUNCTION = re.compile(
    r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<function>[A-Za-z_]\w*)", re.ASCII
)
SETTING = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""Stands for a declared setting in addresses, headers, words and variables."""

ARGUMENT = re.compile(r"\$arg\.([A-Za-z_][A-Za-z0-9_]*)")
"""Stands for an argument of the call in a handler of records."""


class PythonHandler(FrozenModel):
    """An async function in the pack's folder."""

    module: str
    function: str


class HttpHandler(FrozenModel):
    """An endpoint that is sent `{"arguments": …, "key": …}` and answers with the result."""

    url: Annotated[str, Field(pattern=r"^(https?://|\$\{)")]
    """`${SETTING}` in it is filled in."""
    method: Literal["POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: dict[NonEmpty, str] = Field(default_factory=dict)
    """Values may hold `${SETTING}` and `secret://NAME`."""
    timeout: float = Field(default=30.0, gt=0, le=3600)
    """In seconds, for the whole exchange."""


class McpHandler(FrozenModel):
    """A tool of an MCP server that is started for the call and talked to over its standard streams."""

    command: Annotated[tuple[NonEmpty, ...], Field(min_length=1)]
    """Started in the pack's folder. Words may hold `${SETTING}`."""
    tool: NonEmpty
    env: dict[NonEmpty, str] = Field(default_factory=dict)
    """Values may hold `${SETTING}` and `secret://NAME`."""


class ServiceHandler(FrozenModel):
    """One of Podium's own services, by name. Only packs that come with Podium may name one."""

    service: NonEmpty


class RecordRule(FrozenModel):
    """A row that must be there before a call acts, or must not."""

    table: NonEmpty
    where: dict[str, Json]
    """Column → value; `id` is the record's id. `$arg.NAME` and `$today` stand for an argument and the day."""
    absent: bool = False
    """True: no such row may be there."""
    otherwise: NonEmpty
    """Sentence with which the call is refused."""


class RecordsHandler(FrozenModel):
    """Records that Podium keeps for the pack: the call adds a row, updates one or lists them, without code."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    """Word for one record, such as `loan`: its id is the field `loan_id`."""
    add: str = ""
    """Table that gets a row of the arguments."""
    update: str = ""
    """Table whose row with the id of the arguments gets the other arguments."""
    list: str = ""
    """Table whose rows are given that fit the arguments, as a list of the table's name."""
    set: dict[str, Json] = Field(default_factory=dict)
    """Column → value that a row gets beside the arguments. `$arg.NAME` is an argument, `$today+14` a day."""
    where: dict[str, Json] = Field(default_factory=dict)
    """Column → value that a listed row has, and that an updated one must have before."""
    before: dict[str, Json] = Field(default_factory=dict)
    """Column → value that a listed row is less than, such as `$today`."""
    require: tuple[RecordRule, ...] = ()
    """Rules that must hold before anything is changed."""

    @model_validator(mode="after")
    def _one_operation(self) -> RecordsHandler:
        if sum(map(bool, (self.add, self.update, self.list))) != 1:
            raise ValueError("name one table under `add`, `update` or `list`")
        if self.before and not self.list:
            raise ValueError("`before` goes with `list`")
        return self


AnyHandler = PythonHandler | HttpHandler | McpHandler | RecordsHandler | ServiceHandler

_MODELS: dict[str, type[HttpHandler | McpHandler | RecordsHandler]] = {
    "http": HttpHandler,
    "mcp": McpHandler,
    "records": RecordsHandler,
}
HANDLER_FORMS = 'must be `module:function`, {"http": {…}}, {"mcp": {…}} or {"records": {…}}'


def python_handler(text: str) -> PythonHandler:
    """Raises `ValueError` with the words when it is no `module:function`."""
    match = _FUNCTION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a `module:function` such as `handlers.leads:create`")
    return PythonHandler(module=match["module"], function=match["function"])


def handler_of(written: str | dict[str, Json]) -> AnyHandler:
    """The handler. Raises `ValueError` with the words of what is wrong."""
    if isinstance(written, str):
        return python_handler(written)
    if set(written) == {"service"} and isinstance(written["service"], str):
        return ServiceHandler(service=written["service"])
    kinds = [kind for kind in written if kind in _MODELS]
    if len(written) != 1 or not kinds:
        raise ValueError(HANDLER_FORMS)
    try:
        return _MODELS[kinds[0]].model_validate(written[kinds[0]])
    except ValidationError as error:
        problems = (
            f"{'.'.join(map(str, (kinds[0], *detail['loc'])))}: {detail['msg'].lower()}"
            for detail in error.errors(include_url=False)
        )
        raise ValueError("; ".join(problems)) from None


def performer(written: str | dict[str, Json]) -> str:
    """Name the performer for a person: a module, an address or a command."""
    handler = handler_of(written)
    if isinstance(handler, HttpHandler):
        return f"http {handler.url}"
    if isinstance(handler, McpHandler):
        return f"mcp {shlex.join(handler.command)}"
    if isinstance(handler, RecordsHandler):
        return f"records {handler.add or handler.update or handler.list}"
    if isinstance(handler, ServiceHandler):
        return f"podium {handler.service}"
    return f"python {handler.module}"


def settings_in(handler: AnyHandler) -> set[str]:
    """Names of the settings that it fills in."""
    if isinstance(handler, HttpHandler):
        texts = [handler.url, *handler.headers.values()]
    elif isinstance(handler, McpHandler):
        texts = [*handler.command, *handler.env.values()]
    else:
        texts = []
    return {name for text in texts for name in SETTING.findall(text)}


def argument_names(handler: RecordsHandler) -> set[str]:
    """Names of the arguments that a handler of records refers to."""
    conditions = [
        handler.set,
        handler.where,
        handler.before,
        *(rule.where for rule in handler.require),
    ]
    texts = [value for condition in conditions for value in condition.values()]
    return {match[1] for text in texts if (match := ARGUMENT.fullmatch(str(text)))}


@dataclass(frozen=True)
class PackScope:
    """The surroundings of one performed call, for a handler in a pack's folder."""

    key: str
    """The idempotency key: what is done twice under one key must have happened once."""
    tool: str
    now: datetime
    """In UTC."""
    settings: Mapping[str, str] = field(repr=False)
    """The settings that the registry declares, with their values; secrets are among them."""
    folder: Path
    """The pack's own files. Not to be written to."""
    state: Path
    """For files that the pack keeps: private, and there."""
    timeout_seconds: float
    """After this the handler is cancelled."""
    planned_at: datetime | None = None
    """Time at which the plan of this call was shown to people. Later changes are not what they approved."""


PackFunction = Callable[[dict[str, Any], PackScope], Awaitable[dict[str, Any]]]
"""Performs a tool. Raises `ToolBroke` with a sentence that says what to do."""

RowReader = Callable[
    [str, dict[str, Any], tuple[str, ...], PackScope], Awaitable[dict[str, Any] | None]
]
"""Reads one row: table, column → value, columns to give (none: all), scope. None: no such row."""


def settings_of(pack: Pack, environ: Mapping[str, str]) -> dict[str, str]:
    """The declared settings, each with its value in `environ` or else its default."""
    return {
        setting.name: environ.get(setting.name) or setting.default
        for setting in pack.registry.settings
    }
