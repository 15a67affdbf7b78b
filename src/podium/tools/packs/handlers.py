"""The four ways in which a tool of a pack is performed, as its registry writes them."""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from podium.core.model import FrozenModel, Json, NonEmpty

_FUNCTION = re.compile(
    r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<function>[A-Za-z_]\w*)", re.ASCII
)
SETTING = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""Stands for a declared setting in addresses, headers, words and variables."""


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


AnyHandler = PythonHandler | HttpHandler | McpHandler | ServiceHandler

_OVER_THE_WIRE: dict[str, type[HttpHandler | McpHandler]] = {"http": HttpHandler, "mcp": McpHandler}


def python_handler(text: str) -> PythonHandler:
    """Raises `ValueError` with the words when it is no `module:function`."""
    match = _FUNCTION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no `module:function`, as in `handlers.leads:create`")
    return PythonHandler(module=match["module"], function=match["function"])


def handler_of(written: str | dict[str, Json]) -> AnyHandler:
    """The handler. Raises `ValueError` with the words of what is wrong."""
    if isinstance(written, str):
        return python_handler(written)
    if set(written) == {"service"} and isinstance(written["service"], str):
        return ServiceHandler(service=written["service"])
    kinds = [kind for kind in written if kind in _OVER_THE_WIRE]
    if len(written) != 1 or not kinds:
        raise ValueError('must be `module:function`, {"http": {…}} or {"mcp": {…}}, one of them')
    try:
        return _OVER_THE_WIRE[kinds[0]].model_validate(written[kinds[0]])
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
