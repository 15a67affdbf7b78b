"""A bike workshop's pack, as somebody writes one who has never seen Podium's code."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

REGISTRY: dict[str, Any] = {
    "pack": "bikes",
    "version": "1",
    "description": "A small bike workshop.",
    "settings": [
        {"name": "BIKES_PARTS_URL"},
        {"name": "BIKES_TOKEN", "secret": True},
        {"name": "BIKES_CITY", "default": "Fitzroy"},
    ],
    "domains": [
        {"name": "repair", "patterns": ["repair.*"], "default_tier": "T1"},
        {"name": "parts", "patterns": ["parts.*"], "default_tier": "T2"},
    ],
    "vocabulary": {"suburb": "suburbs.txt"},
    "contexts": [{"name": "check_in", "schema_file": "schemas/check_in.json"}],
    "reader": "ledger:read_row",
    "tools": [
        {
            "name": "repair.book",
            "description": "Book a bike in for a repair.",
            "examples": [{"say": "book in a Brompton for Kim", "arguments": {"owner": "Kim"}}],
            "input_schema": {
                "type": "object",
                "properties": {
                    "owner": {"type": "string", "x-kind": "name", "x-ask": "Whose bike is it?"},
                    "bike": {"type": "string", "x-kind": "text", "default": "bike"},
                },
                "required": ["owner"],
                "additionalProperties": False,
            },
            "tier": "T1",
            "receipt_fields": ["repair_id", "owner"],
            "idempotency_key": "call",
            "undo": "repair.drop",
            "verify": [
                {
                    "table": "repairs",
                    "where": {"id": "$result.repair_id"},
                    "columns": ["bike"],
                    "expect": {"owner": "$arg.owner"},
                }
            ],
            "handler": "desk.repairs:book",
        },
        {
            "name": "repair.drop",
            "description": "Take a repair out of the book.",
            "input_schema": {
                "type": "object",
                "properties": {"repair_id": {"type": "string", "x-kind": "id:repair"}},
                "required": ["repair_id"],
                "additionalProperties": False,
            },
            "tier": "T2",
            "receipt_fields": ["repair_id"],
            "verify": [
                {"table": "repairs", "where": {"id": "$arg.repair_id"}, "absent": True},
            ],
            "handler": "desk.repairs:drop",
        },
        {
            "name": "parts.order",
            "description": "Order a part from the supplier.",
            "input_schema": {
                "type": "object",
                "properties": {"part": {"type": "string", "x-kind": "text"}},
                "required": ["part"],
                "additionalProperties": False,
            },
            "tier": "T3",
            "receipt_fields": ["order"],
            "handler": {
                "http": {
                    "url": "${BIKES_PARTS_URL}/orders",
                    "headers": {
                        "Authorization": "Bearer ${BIKES_TOKEN}",
                        "X-Door": "secret://DOOR_KEY",
                    },
                    "timeout": 20,
                }
            },
        },
        {
            "name": "parts.price",
            "description": "Look up what a part costs.",
            "input_schema": {
                "type": "object",
                "properties": {"part": {"type": "string", "x-kind": "text"}},
                "required": ["part"],
                "additionalProperties": False,
            },
            "tier": "T2",
            "receipt_fields": ["price"],
            "handler": {
                "mcp": {
                    "command": ["python3", "price_server.py"],
                    "tool": "price",
                    "env": {"CITY": "${BIKES_CITY}"},
                }
            },
        },
    ],
    "skills": [
        {
            "name": "repair.with_part",
            "description": "Book a repair and order the part for it.",
            "input_schema": {
                "type": "object",
                "properties": {"owner": {"type": "string"}, "part": {"type": "string"}},
                "required": ["owner", "part"],
            },
            "steps": [
                {"id": "book", "tool": "repair.book", "arguments": {"owner": "$message.owner"}},
                {"id": "order", "tool": "parts.order", "arguments": {"part": "$message.part"}},
            ],
        }
    ],
}

FILES = {
    "suburbs.txt": "# where customers live\nFitzroy\nBrunswick East\n\nFitzroy\n",
    "schemas/check_in.json": '{"type": "object", "properties": {"bikes": {"type": "array"}}}',
    "ledger.py": """
import json


def entries(scope):
    file = scope.state / "repairs.json"
    return json.loads(file.read_text()) if file.exists() else {}


def write(scope, repairs):
    (scope.state / "repairs.json").write_text(json.dumps(repairs))


async def read_row(table, where, columns, scope):
    assert table == "repairs"
    row = entries(scope).get(where["id"])
    return None if row is None else {name: row[name] for name in columns}
""",
    "desk/repairs.py": """
import hashlib

from podium.domain.errors import ToolBroke  # as packs of 0.2 and before have it

from ..ledger import entries, write


async def book(arguments, scope):
    if arguments["owner"] == "nobody":
        raise ToolBroke("nobody has no bikes; say whose it is")
    repairs = entries(scope)
    number = "repair_" + hashlib.sha256(scope.key.encode()).hexdigest()[:10]
    repairs.setdefault(number, {**arguments, "at": scope.now.isoformat()})
    if arguments["bike"] != "ghost":
        write(scope, repairs)
    return {"repair_id": number, "owner": arguments["owner"], "undo": {"repair_id": number}}


async def drop(arguments, scope):
    repairs = entries(scope)
    if repairs.pop(arguments["repair_id"], None) is None:
        raise ToolBroke("there is no such repair; `repair.book` makes one")
    write(scope, repairs)
    return arguments
""",
    "price_server.py": """
import json
import os
import sys


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def called(asked):
    part = asked["arguments"]["part"]
    if part == "unobtainium":
        return {"content": [{"type": "text", "text": "nobody sells that"}], "isError": True}
    if part == "crash":
        sys.exit("the till is on fire")
    if part == "text":
        return {"content": [{"type": "text", "text": json.dumps({"price": 7})}]}
    found = {"price": len(part), "city": os.environ["CITY"], "key": asked["_meta"]["podium/key"]}
    return {"content": [], "structuredContent": found}


print("price server 1.0 ready")
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        say({"id": "s1", "method": "ping"})
        say({"id": "s2", "method": "roots/list"})
        say({"id": message["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": {}}})
    elif message.get("method") == "tools/call":
        say({"method": "notifications/message", "params": {"level": "info"}})
        say({"id": message["id"], "result": called(message["params"])})
""",
}


def write_pack(folder: Path, registry: Any = None, **files: str) -> Path:
    """The pack in a folder, with another registry or other files when these are given."""
    folder.mkdir(parents=True, exist_ok=True)
    given = REGISTRY if registry is None else registry
    text = given if isinstance(given, str) else json.dumps(given, indent=2)
    for name, content in {**FILES, "tools.registry.json": text, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


def registry_with(pointer: str, value: Any) -> dict[str, Any]:
    """The registry with something else at a pointer; `...` takes it out."""
    changed = deepcopy(REGISTRY)
    node: Any = changed
    *parts, last = pointer.strip("/").split("/")
    for part in parts:
        node = node[int(part)] if isinstance(node, list) else node[part]
    if value is ...:
        del node[last]
    elif isinstance(node, list):
        node[int(last) : int(last) + 1] = [value]
    else:
        node[last] = value
    return changed
