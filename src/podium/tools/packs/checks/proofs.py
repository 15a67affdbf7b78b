"""Every tool proves what it did: fields for the receipt, and rows to look at afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.core.model import Json
from podium.core.packs import PackTool, RowCheck
from podium.tools.packs.checks.registry_check import RegistryCheck, properties_of
from podium.tools.packs.places import pointer

OWN_FIELDS = ("verification", "undoes")
"""Fields that Podium itself puts on every receipt of a pack's tool."""

_REFERENCE = re.compile(r"\$(?P<source>\w+)\.(?P<path>.+)")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check(registry_check: RegistryCheck) -> None:
    for location, tool in registry_check.located_tools():
        _check_fields(registry_check, location, tool)
        for number, proof in enumerate(tool.verify):
            _check_proof(registry_check, f"{location}/verify/{number}", tool, proof)
        if tool.verify and not registry_check.registry.reader:
            problem = 'needs a `"reader": "module:function"` of the pack, which reads the rows'
            registry_check.problems.add(f"{location}/verify", problem)


def _check_fields(registry_check: RegistryCheck, location: str, tool: PackTool) -> None:
    if not tool.receipt_fields:
        problem = "is empty; name the fields of the result that prove what was done"
        registry_check.problems.add(f"{location}/receipt_fields", problem)
    names: set[str] = set()
    for number, name in enumerate(tool.receipt_fields):
        at = f"{location}/receipt_fields/{number}"
        if name in names:
            registry_check.problems.add(at, f"{name!r} is named twice")
        names.add(name)
        if name in OWN_FIELDS:
            registry_check.problems.add(at, f"{name!r} is Podium's own field, and on every receipt")


def _check_proof(
    registry_check: RegistryCheck, location: str, tool: PackTool, proof: RowCheck
) -> None:
    if not proof.where:
        registry_check.problems.add(f"{location}/where", "is empty; say which row is looked for")
    if proof.absent and proof.expect:
        registry_check.problems.add(
            f"{location}/expect", "a row that may not be there has no values"
        )
    for part, columns in (("where", proof.where), ("expect", proof.expect)):
        for column, value in columns.items():
            for problem in _problems(tool, column, value):
                registry_check.problems.add(f"{location}{pointer((part, column))}", problem)
    for number, column in enumerate(proof.columns):
        if not _COLUMN.fullmatch(column):
            registry_check.problems.add(
                f"{location}/columns/{number}", f"{column!r} is no name of a column"
            )
    if not _COLUMN.fullmatch(proof.table):
        registry_check.problems.add(f"{location}/table", f"{proof.table!r} is no name of a table")


def _problems(tool: PackTool, column: str, value: Json) -> Iterator[str]:
    if not _COLUMN.fullmatch(column):
        yield f"{column!r} is no name of a column"
    if not isinstance(value, str) or not value.startswith("$"):
        return
    match = _REFERENCE.fullmatch(value)
    source, name = (match["source"], match["path"].partition(".")[0]) if match else ("", "")
    if source == "arg" and name not in properties_of(tool.input_schema):
        yield f"{value!r}: {name!r} is no argument of {tool.name}"
    elif source == "result" and name not in tool.receipt_fields:
        yield f"{value!r}: {name!r} is not among the receipt_fields"
    elif source not in ("arg", "result"):
        yield f"{value!r} must be `$arg.NAME` or `$result.NAME`"
