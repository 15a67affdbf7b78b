"""A small pack, a Podium in a folder, and the loopback server that plays OpenRouter."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podium.app.app import Podium
from podium.config.configuration import load_configuration
from podium.core.decisions import Tier
from podium.core.model import Json
from podium.core.packs import DomainRow, Pack, PackRegistry, PackTool, Skill, SkillStep
from podium.jobs.operator.classifier_factory import open_router
from podium.jobs.operator.judgement.model_classifier import READING_LIMITS, ModelClassifier
from podium.jobs.operator.models import Message
from podium.testing.modelserver import ModelServer

KEY = "sk-or-v1-0123456789abcdef0123456789abcdef"
NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


def tool(called: str, tier: Tier, *required: str, **kinds: str) -> PackTool:
    """A tool whose arguments are given as name=kind."""
    return PackTool(
        name=called,
        description=f"Does {called}.",
        input_schema={
            "type": "object",
            "properties": {
                item: {"type": "string", "x-kind": kind} for item, kind in kinds.items()
            },
            "required": list(required),
            "additionalProperties": False,
        },
        tier=tier,
        receipt_fields=("id",),
        handler="things:act",
    )


TOOLS = (
    tool("leads.create", Tier.T1, "name", name="name", phone="phone", notes="text"),
    tool("leads.archive", Tier.T1, "lead_id", lead_id="id:lead", reason="text"),
    tool("os.create_note", Tier.T1, "text", text="text"),
    tool("os.create_task", Tier.T1, "title", title="text", due="date"),
    tool("os.list_invoices", Tier.T0, status="choice"),
    tool("quote.add_line", Tier.T2, "quote_id", quote_id="id:quote", unit_price="money"),
    tool("invoice.void", Tier.T4, "invoice_id", invoice_id="id:invoice", reason="text"),
    tool("sms.send", Tier.T3, "to", "text", to="phone", text="text"),
    tool("email.send", Tier.T3, "to", "body", to="email", subject="text", body="text"),
)
DOMAINS = (
    DomainRow(
        name="lead", description="People who may buy", patterns=("leads.*",), default_tier=Tier.T1
    ),
    DomainRow(name="quote", patterns=("quote.*",), default_tier=Tier.T2),
    DomainRow(name="invoice", patterns=("invoice.*",), default_tier=Tier.T3),
    DomainRow(name="comms", patterns=("sms.*", "email.*"), default_tier=Tier.T3),
    DomainRow(name="system", patterns=("os.*",), default_tier=Tier.T0),
)
SKILL = Skill(
    name="leads.greet",
    description="Takes a lead and thanks for it.",
    input_schema={
        "type": "object",
        "properties": {"name": {"x-kind": "name"}},
        "required": ["name"],
    },
    steps=(SkillStep(id="a", tool="leads.create"), SkillStep(id="b", tool="sms.send")),
)


def pack_of(*tools: PackTool) -> Pack:
    registry = PackRegistry(
        pack="office",
        version="1",
        description="A small office",
        domains=DOMAINS,
        skills=(SKILL,),
        tools=tools or TOOLS,
    )
    return Pack(registry=registry, folder="/nowhere", digest="d")


PACK = pack_of()


def message_of(text: str, **context: Json) -> Message:
    return Message(text=text, context=context, now=NOW)


def answer(**changes: Any) -> dict[str, Any]:
    """Return a good model's answer to `new lead: Sarah`."""
    call = {"tool": "leads.create", "arguments": {"name": "Sarah"}}
    fields = {"intent": "execute", "domain": "lead", "calls": [call], "confidence": 0.9}
    return {**fields, "reasoning": "A new lead.", **changes}


NONCE = r'"podium_nonce": (?:\{"const": )?"(?P<nonce>[0-9a-f]+)"'
"""Where the prompt names the nonce that the answer must carry."""


def speaking(*steps: Mapping[str, Any]) -> dict[str, Any]:
    """A script of one answer after the other. `{{nonce}}` in a text is the nonce that was asked for."""
    return {"rules": [{"when": NONCE, "each_time": True, "steps": list(steps)}]}


def saying(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A step that gives the object, with the nonce."""
    return {"text": json.dumps({**fields, "podium_nonce": "{{nonce}}"})}


def podium_in(
    folder: Path, environ: Mapping[str, str], user: str = "", project: str = ""
) -> Podium:
    project_folder, home = folder / "project", folder / "home"
    for item in (project_folder, home):
        item.mkdir(exist_ok=True)
    (project_folder / "podium.yaml").write_text(project)
    (home / "config.yaml").write_text(user)
    every = {"PATH": "/usr/bin:/bin", "HOME": str(home), "PODIUM_HOME": str(home), **environ}
    return Podium(load_configuration(every, project=project_folder), every)


@asynccontextmanager
async def reader(
    folder: Path, *steps: Mapping[str, Any], seconds: float = 200.0, pack: Pack = PACK
) -> AsyncIterator[tuple[ModelClassifier, ModelServer, Podium]]:
    """A classifier that asks the loopback server as it would ask OpenRouter."""
    async with ModelServer(speaking(*steps), key=KEY) as server:
        environ = {"OPENROUTER_API_KEY": KEY, "OPENROUTER_BASE_URL": f"{server.url}/v1"}
        podium = podium_in(folder, environ)
        agent, _ = open_router(podium)
        limits = READING_LIMITS.model_copy(update={"seconds": seconds})
        try:
            yield ModelClassifier(agent, pack, limits=limits), server, podium
        finally:
            await podium.close()
