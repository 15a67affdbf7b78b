"""A pack of a thousand tools, as a large company's might look: departments, things, and what is done to them."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

from podium.core.model import Json

DEPARTMENTS = (
    "sales", "stock", "fleet", "payroll", "support", "legal", "events", "research", "kitchen", "garden",
)  # fmt: skip
THINGS = {
    "sales": "offer customer region campaign rebate", "stock": "pallet shelf parcel barcode supplier",
    "fleet": "truck tyre trailer fuel driver", "payroll": "payslip bonus timesheet pension allowance",
    "support": "ticket complaint callback article macro", "legal": "contract clause licence trademark dispute",
    "events": "venue speaker badge booth banquet", "research": "sample experiment reagent dataset grant",
    "kitchen": "recipe menu fridge oven allergen", "garden": "lawn hedge greenhouse sprinkler seedling",
}  # fmt: skip
VERBS = {
    "create": "T2", "list": "T0", "show": "T0", "update": "T2", "archive": "T2", "restore": "T2", "assign": "T2",
    "schedule": "T2", "approve": "T3", "reject": "T3", "inspect": "T1", "print": "T1", "export": "T1", "merge": "T3",
    "split": "T3", "move": "T2", "count": "T0", "tag": "T1", "lock": "T3", "delete": "T4",
}  # fmt: skip
TOOLS = sum(len(THINGS[item].split()) for item in DEPARTMENTS) * len(VERBS)
_SAYINGS = ("{} the {} A-17", "please {} {} A-17", "{} {} no. 44", "can you {} the {} x9z2")
_HANDLER = '''"""Answers."""


async def answer(arguments, scope):
    return {"thing_id": arguments.get("thing_id", "")}
'''


def write_large_pack(folder: Path) -> Path:
    """The pack's folder, with a registry that passes every check."""
    folder.mkdir(parents=True)
    (folder / "answers.py").write_text(_HANDLER)
    registry = {
        "pack": "large",
        "version": "1",
        "description": "Everything a large company does.",
        "domains": [_domain(name) for name in DEPARTMENTS],
        "tools": [
            _tool(department, thing, verb)
            for department in DEPARTMENTS
            for thing, verb in product(THINGS[department].split(), VERBS)
        ],
    }
    (folder / "tools.registry.json").write_text(json.dumps(registry, indent=1))
    return folder


def _domain(name: str) -> Json:
    return {
        "name": name,
        "patterns": [f"{name}.*"],
        "default_tier": "T0",
        "words": THINGS[name].split(),
    }


def _tool(department: str, thing: str, verb: str) -> Json:
    kind = {"type": "string", "minLength": 1, "maxLength": 64, "x-kind": f"id:{thing}"}
    return {
        "name": f"{department}.{verb}_{thing}",
        "description": f"{verb.title()} a {thing} of the {department} department.",
        "examples": [{"say": saying.format(verb, thing)} for saying in _SAYINGS],
        "synonyms": [f"{thing} {verb}"],
        "input_schema": {
            "type": "object",
            "properties": {"thing_id": kind},
            "required": ["thing_id"],
            "additionalProperties": False,
        },
        "tier": VERBS[verb],
        "receipt_fields": ["thing_id"],
        "handler": "answers:answer",
    }


MESSAGES = tuple(
    f"{opening} {verb} the {thing} B-{number}"
    for number, (opening, (department, verb)) in enumerate(
        product(("please", "hey, could you", "now"), product(DEPARTMENTS, VERBS))
    )
    for thing in THINGS[department].split()[number % 5 : number % 5 + 1]
)
"""What is said to it, in other words than its examples."""
