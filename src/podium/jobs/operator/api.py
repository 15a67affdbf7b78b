"""`/api/v1/operator`: messages to the operator, and plans that reverse a receipt."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from podium.app.work_request import ShallowJson
from podium.core.model import NonEmpty
from podium.jobs.operator.composition import undo
from podium.jobs.operator.models import OperatorAnswer, OperatorMode
from podium.jobs.operator.submission import ask
from podium.web.access.authentication import Operator
from podium.web.api.requests import MAX_NAME, TEXT, RequestBody
from podium.web.context import CurrentContext

router = APIRouter(tags=["starting"])

MAX_MESSAGE = 20_000


class Message(RequestBody):
    """Request in plain language."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_MESSAGE, pattern=TEXT)]
    mode: Annotated[str, Field(max_length=60, pattern=TEXT)] = "analyze"
    """analyze, plan or enqueue."""
    context: ShallowJson = Field(default_factory=dict)
    """Values already known, by name."""
    pack: Annotated[str, Field(max_length=MAX_NAME, pattern=TEXT)] = ""
    session: Annotated[str, Field(max_length=MAX_NAME, pattern=TEXT)] = ""
    """Conversation of this person that the message is a part of. Empty: none."""


class UndoRequest(RequestBody):
    receipt: Annotated[NonEmpty, Field(max_length=MAX_NAME, pattern=TEXT)]
    """`RUN#NUMBER`."""


@router.post("/operator/ask", tags=["operator"])
async def ask_operator(
    context: CurrentContext, person: Operator, message: Message
) -> OperatorAnswer:
    """Answer a message. Nothing is done in the modes analyze and plan."""
    return await ask(
        context.podium,
        message.text,
        mode=message.mode,
        context=message.context,
        pack=message.pack,
        by=person.name,
        session=message.session,
    )


@router.post("/operator/undo-plan", tags=["operator"])
async def plan_undo(
    context: CurrentContext, person: Operator, request: UndoRequest
) -> OperatorAnswer:
    """Plan the reversal of a receipt. Nothing is done."""
    return await undo(context.podium, request.receipt, mode=OperatorMode.PLAN, by=person.name)
