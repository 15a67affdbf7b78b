"""The arguments of a tool, read from a clause and from what was handed along."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime

from podium.domain.model import Json
from podium.domain.operating import Message
from podium.domain.packs import Pack, PackTool, Skill
from podium.flows.operator.judgement.fields.choices import named_choices
from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.filling import Filling
from podium.flows.operator.judgement.fields.finding import found_in
from podium.flows.operator.judgement.fields.ids import fits
from podium.flows.operator.judgement.fields.lexicon import pack_lexicon
from podium.flows.operator.judgement.fields.passage import Passage
from podium.flows.operator.judgement.fields.valuing import given_value
from podium.flows.operator.judgement.fields.wanted import Order

_REMEMBERED = 32
"""Clauses whose finds are kept: one clause is read for several tools."""


class FieldExtractor:
    """Reads arguments against one pack. What it gives validates; what it is not sure of is left out."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._lexicon = pack_lexicon(pack)
        self._orders: dict[str, Order] = {}
        self._read: OrderedDict[tuple[str, datetime], tuple[Passage, list[Entity]]] = OrderedDict()

    def entities(self, text: str, now: datetime) -> list[Entity]:
        """What is in the text, in its order; ids with the kinds of this pack's things."""
        return list(self._reading(text, now)[1])

    def arguments(self, clause: str, tool: PackTool | Skill, message: Message) -> dict[str, Json]:
        """Arguments for the tool: from the context where it has one of that name, else from the clause.

        A value of the context that the argument cannot take is left out, and no words stand in for it.
        """
        order = self._order(tool)
        given = self._given(order, message)
        passage, found = self._reading(clause, message.now)
        asked = [each for each in order.wanted if each.name not in message.context]
        read = Filling(order, passage, found, self._lexicon, asked).values()
        return {
            each.name: (given | read)[each.name]
            for each in order.wanted
            if each.name in given or each.name in read
        }

    def choices(self, text: str, shape: Mapping[str, Json], now: datetime) -> list[Json]:
        """The values of an argument's `enum` that the text names."""
        return named_choices(self._reading(text, now)[0], shape, self._lexicon)

    def may_be_id(self, entity: Entity, kind: str) -> bool:
        """Whether a find may be the id of such a thing (`lead`), by its shape and the words before it."""
        return fits(entity, kind, frozenset({kind}), self._lexicon.kinds)

    def _given(self, order: Order, message: Message) -> dict[str, Json]:
        given: dict[str, Json] = {}
        for each in order.wanted:
            if each.name in message.context:
                value = message.context[each.name]
                found = (
                    self._reading(value, message.now)[1]
                    if isinstance(value, str) and len(value) < 200
                    else []
                )
                taken = given_value(each, value, found)
                if taken is not None:
                    given[each.name] = taken
        return given

    def _order(self, tool: PackTool | Skill) -> Order:
        order = self._orders.get(tool.name)
        if order is None:
            order = self._orders[tool.name] = Order(tool, self._pack)
        return order

    def _reading(self, text: str, now: datetime) -> tuple[Passage, list[Entity]]:
        known = self._read.get((text, now))
        if known is None:
            passage = Passage(text, now)
            known = self._read[text, now] = passage, found_in(passage, self._lexicon)
            if len(self._read) > _REMEMBERED:
                self._read.popitem(last=False)
        return known
