"""Finds and given values as the values that arguments take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from podium.domain.model import Json
from podium.flows.operator.judgement.fields.dates import date_in
from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.passage import Passage, tidy
from podium.flows.operator.judgement.fields.wanted import Wanted

_JOINT = re.compile(r",? {0,2}(?:(?:vic(?:toria)?|nsw|qld|sa|wa|tas|nt|act)\b,? ?)?", re.IGNORECASE)


def value_of(wanted: Wanted, entity: Entity, found: Sequence[Entity], passage: Passage) -> Json:
    """The find as this argument has it; None where it cannot be that."""
    if entity.kind == "address":
        return whole_address(entity, found, passage)
    if wanted.kind == "date" and entity.kind == "date" and wanted.past:
        return date_in(entity.text, passage.now, past=True)
    if entity.kind == "datetime":
        return {"date": entity.value[:10], "time": entity.value[11:16]}.get(
            wanted.kind, entity.value
        )
    if wanted.kind == "datetime":
        return _moment(entity, found, passage.now)
    return entity.value


def whole_address(street: Entity, found: Sequence[Entity], passage: Passage) -> str:
    """Number and street with the suburb and the postcode that directly follow."""
    end = street.end
    for kind in ("suburb", "postcode"):
        joint = _JOINT.match(passage.smooth, end)
        follows = joint.end() if joint else end
        next_one = next(
            (each for each in found if each.kind == kind and each.start == follows), None
        )
        end = next_one.end if next_one else end
    return tidy(passage.text[street.start : end])


def _moment(day: Entity, found: Sequence[Entity], now: datetime) -> str | None:
    time = next((each for each in found if each.kind == "time"), None)
    if time is None:
        return None
    moment = datetime.fromisoformat(f"{day.value}T{time.value}:00")
    return moment.replace(tzinfo=now.tzinfo).isoformat()


def given_value(wanted: Wanted, value: Json, found: Sequence[Entity]) -> Json:
    """A value of the context as the argument takes it: text such as `$500` or `0400 123 456` is read.

    `found` are the finds in that text. None: it is nothing the argument takes.
    """
    if wanted.accepts(value):
        return value
    if not isinstance(value, str):
        return None
    readings = [
        each.value
        for each in found
        if each.kind == wanted.kind and each.text.strip() == value.strip()
    ]
    if wanted.kind in {"money", "number"}:
        readings += [each.value for each in found if each.kind in {"money", "number"}]
    if wanted.kind == "flag":
        readings.append(
            {"true": True, "yes": True, "false": False, "no": False}.get(value.strip().lower())
        )
    return next((each for each in readings if each is not None and wanted.accepts(each)), None)
