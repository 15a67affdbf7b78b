"""A small pack of a shop, and an operator for it on a real record and engine."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from podium.app.app import Podium
from podium.app.packs import open_pack, pack_file
from podium.config.configuration import load_configuration
from podium.config.trust import TrustBook
from podium.core.approvals import Approver
from podium.core.packs import Pack
from podium.core.plan_approval import UngroundedArgument
from podium.jobs.operator import Operator, OperatorDeps
from podium.jobs.operator.composition import brain_of, context_problems, habits_of
from podium.jobs.operator.models import Message, OperatorAnswer, Reading, ToolIntent
from podium.jobs.operator.testing import FakeClassifier
from podium.tools.packs import load_pack

HANDLERS = '''
"""What the shop does, in one file of JSON."""

import json
import os
import signal

from podium.core.errors import ToolBroke


def _load(scope):
    file = scope.state / "shop.json"
    return json.loads(file.read_text()) if file.exists() else {"things": {}, "sent": [], "keys": {}}


def _keep(scope, shop):
    (scope.state / "shop.json").write_text(json.dumps(shop))


def _maybe_die(scope):
    """Stands for a machine that loses power right here."""
    if (scope.state / f"die-in-{scope.tool}").exists():
        (scope.state / f"die-in-{scope.tool}").unlink()
        os.kill(os.getpid(), signal.SIGKILL)


async def add(arguments, scope):
    shop = _load(scope)
    known = shop["keys"].get(scope.key)
    if known is None:
        known = f"thing_{len(shop['things']) + 1}"
        shop["things"][known] = {"name": arguments["name"], "status": "draft"}
        shop["keys"][scope.key] = known
        _keep(scope, shop)
    _maybe_die(scope)
    return {"thing_id": known, "undo": {"thing_id": known}}


async def move(arguments, scope):
    target = {"things.publish": "public", "things.hide": "draft", "things.burn": "ash", "things.unburn": "draft"}
    shop = _load(scope)
    thing = shop["things"].get(arguments["thing_id"])
    if thing is None:
        raise ToolBroke(f"there is no thing {arguments['thing_id']!r}; look at the shelf")
    thing["status"] = target[scope.tool]
    _keep(scope, shop)
    return {"thing_id": arguments["thing_id"], "status": thing["status"], "undo": {"thing_id": arguments["thing_id"]}}


async def look(arguments, scope):
    return {"count": len(_load(scope)["things"])}


async def send(arguments, scope):
    shop = _load(scope)
    shop["sent"].append([arguments["to"], arguments["text"]])
    _keep(scope, shop)
    _maybe_die(scope)
    return {"sent": len(shop["sent"])}


async def read_row(table, where, columns, scope):
    row = _load(scope)["things"].get(where.get("id"))
    return None if row is None else {"id": where["id"], **row}
'''


def _field(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "x-kind": kind, **more}


def _schema(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


THING = _field("id:thing", **{"x-ask": "Which thing?"})
ROW = {"table": "things", "where": {"id": "$result.thing_id"}}


def registry() -> dict[str, Any]:
    """Return the content of the shop's registry; tests change the parts they are about."""
    by_id = _schema(["thing_id"], thing_id=THING)
    moved = {
        "input_schema": by_id,
        "receipt_fields": ["thing_id", "status"],
        "handler": "handlers:move",
    }
    return {
        "pack": "shop",
        "version": "1.0.0",
        "description": "Things that are made, shown and sent.",
        "domains": [
            {"name": "things", "patterns": ["things.*"], "default_tier": "T1", "words": ["thing"]},
            {"name": "comms", "patterns": ["mail.*"], "default_tier": "T3", "words": ["mail"]},
            {"name": "system", "patterns": ["os.*"], "default_tier": "T0", "words": ["shelf"]},
        ],
        "reader": "handlers:read_row",
        "tools": [
            {
                "name": "things.add",
                "description": "Make a new thing.",
                "examples": [{"say": "add a thing called lamp"}],
                "input_schema": _schema(
                    ["name"], name=_field("name", **{"x-ask": "What is it called?"})
                ),
                "tier": "T1",
                "receipt_fields": ["thing_id"],
                "idempotency_key": "call",
                "undo": "things.burn",
                "handler": "handlers:add",
                "verify": [{**ROW, "columns": ["name"], "expect": {"status": "draft"}}],
            },
            {
                **moved,
                "name": "things.publish",
                "description": "Show a thing to everybody.",
                "examples": [{"say": "publish thing_1"}],
                "tier": "T2",
                "undo": "things.hide",
                "idempotency_key": "call",
                "depends_on": [{"tool": "things.add", "fills": {"thing_id": "thing_id"}}],
                "verify": [{**ROW, "expect": {"status": "public"}}],
                "safer_alternative": {"tool": "os.shelf", "because": "looking changes nothing"},
            },
            {
                **moved,
                "name": "things.hide",
                "description": "Take a thing from view.",
                "tier": "T2",
                "undo": "things.publish",
                "idempotency_key": "call",
            },
            {
                **moved,
                "name": "things.burn",
                "description": "Burn a thing.",
                "tier": "T4",
                "undo": "things.unburn",
                "approvals": ["ops", "owner"],
                "depends_on": [{"tool": "things.add", "fills": {"thing_id": "thing_id"}}],
            },
            {**moved, "name": "things.unburn", "description": "Unburn a thing.", "tier": "T4"},
            {
                "name": "mail.send",
                "description": "Send words to somebody.",
                "input_schema": _schema(["to", "text"], to=_field("email"), text=_field("text")),
                "tier": "T3",
                "receipt_fields": ["sent"],
                "cost": {"usd": 0.01, "seconds": 1},
                "handler": "handlers:send",
            },
            {
                "name": "os.shelf",
                "description": "Count the things.",
                "input_schema": _schema([]),
                "tier": "T0",
                "receipt_fields": ["count"],
                "handler": "handlers:look",
                "idempotency_key": "call",
            },
            {
                "name": "os.untried",
                "description": "Something nobody has tried yet.",
                "input_schema": _schema([]),
                "tier": "T0",
                "receipt_fields": ["count"],
                "handler": "handlers:look",
                "experimental": True,
            },
        ],
    }


class Shop:
    """A project with the shop's pack in it, trusted."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.project = folder / "project"
        self.home = folder / "home"
        self.pack_folder = self.project / "packs" / "shop"
        self.pack_folder.mkdir(parents=True)
        (self.pack_folder / "handlers.py").write_text(HANDLERS)
        self.write({**registry(), **changes})
        text = "approvers: {ops: [olga], owner: [oscar]}\nflows: {operator: {pack: shop, classifier: embedded}}\n"
        (self.project / "podium.yaml").write_text(text)
        self.trust()

    def write(self, registry: Mapping[str, Any]) -> None:
        (self.pack_folder / "tools.registry.json").write_text(json.dumps(registry, indent=1))

    def trust(self) -> None:
        pack = load_pack(self.pack_folder)
        configuration = load_configuration(self.environ, project=self.project)
        TrustBook(configuration.folders.user_state).trust(pack_file(pack), pack.digest)

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PODIUM_DATABASE_URL",) if name in os.environ}
        own = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "PODIUM_HOME": str(self.home)}
        return {**own, **kept}

    @property
    def state(self) -> Path:
        """Return the folder in which the pack keeps its files."""
        return self.project / ".podium" / "packs" / "shop"

    def kept(self) -> dict[str, Any]:
        """Return the content of the shop's own file."""
        found: dict[str, Any] = json.loads((self.state / "shop.json").read_text())
        return found

    @asynccontextmanager
    async def podium(self, user: str = "ann") -> AsyncIterator[Podium]:
        environ = {**self.environ, "PODIUM_USER": user}
        podium = Podium(load_configuration(environ, project=self.project), environ)
        try:
            yield podium
        finally:
            await podium.close()


def operator_for(
    podium: Podium, readings: Mapping[str, Reading], *, max_tool_calls: int = 50
) -> Operator:
    """An operator that understands exactly these messages."""
    pack = open_pack(podium, "shop")
    return Operator(cli_for(podium, pack, readings, max_tool_calls))


def unmarked(
    message: Message, intent: Sequence[ToolIntent]
) -> list[tuple[UngroundedArgument, ...]]:
    """For readings that a test means as they are."""
    return [() for _ in intent]


def cli_for(
    podium: Podium, pack: Pack, readings: Mapping[str, Reading], max_tool_calls: int = 50
) -> OperatorDeps:
    from podium.app.approvals import approve

    async def say_yes(action_id: str) -> Any:
        store, groups = await podium.store(), podium.settings.approvers
        user = podium.settings.user
        return await approve(store, podium.clock, podium.ids, action_id, by=user, groups=groups)

    async def nobody(run: Any) -> None:
        return

    return OperatorDeps(
        pack=pack,
        classifier=FakeClassifier(readings),
        find_conflict=lambda message, reading, pack: None,
        find_ungrounded=unmarked,
        context_problems=lambda context: context_problems(pack, context),
        now=podium.clock.now,
        ids=podium.ids,
        brain=lambda: brain_of(podium),
        worker_is_there=nobody,
        approve=say_yes,
        approver=lambda: Approver(name=podium.settings.user),
        habits=habits_of(podium),
        user=podium.settings.user,
        max_tool_calls=max_tool_calls,
    )


async def receipts_of(podium: Podium, answer: OperatorAnswer) -> list[Any]:
    store = await podium.store()
    return await store.read(lambda view: view.receipts(answer.run_id))
