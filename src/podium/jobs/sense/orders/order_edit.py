"""Edits of a work order by a person: fields they may write, and what Podium derives anew."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import ValidationError

from podium.core.decisions import Approval
from podium.core.errors import BadInput
from podium.core.model import Json
from podium.jobs.sense.orders.work_order import WorkOrder
from podium.render.text import escaped_text

if TYPE_CHECKING:
    import yaml

    from podium.app.app import Podium


OF_PODIUM = ("id", "tier", "zones", "provenance", "created_at", "delivered_by")
"""Fields of an order that nobody writes by hand."""
MAX_ID = 100
_EDITION = re.compile(r"-R(\d{1,6})$")


def order_in(approval: Approval) -> WorkOrder | None:
    """The work order that an approval hands over; None when it is not as it was written."""
    try:
        return WorkOrder.model_validate(_plain(str(approval.arguments.get("content", ""))))
    except (BadInput, ValidationError):
        return None


def asked_order(approval: Approval) -> WorkOrder:
    """The same. Raises `BadInput` where there is none."""
    if (order := order_in(approval)) is None:
        raise BadInput(f"approval {approval.id} has no order that can be read; reject it")
    return order


def editable_text(order: WorkOrder) -> str:
    """Return the editable fields of an order as YAML."""
    record = order.model_dump(mode="json", exclude_defaults=True, exclude=set(OF_PODIUM))
    plain = _dumped(record, unicode=True)
    # What cannot be seen is written in YAML's own way, and means the same.
    return plain if escaped_text(plain) == plain else _dumped(record, unicode=False)


def edited_order(asked: WorkOrder, text: str) -> WorkOrder:
    """The order as it was changed, under the next id: one id is delivered once. Raises `BadInput`."""
    fields = _plain(text)
    if not isinstance(fields, dict):
        raise BadInput("the order is no YAML with keys; write `title:`, `ops:` and so on")
    if taken := [name for name in OF_PODIUM if name in fields]:
        raise BadInput(f"{', '.join(taken)} of an order are Podium's to say; leave them out")
    own = asked.model_dump(mode="json", exclude_defaults=True)
    unchanged = {name: own[name] for name in ("provenance", "created_at") if name in own}
    try:
        order = WorkOrder.model_validate({**fields, **unchanged, "id": _next_id(asked.id)})
    except ValidationError as error:
        raise BadInput(f"the order does not hold: {_problems_text(error)}") from None
    if order.model_copy(update={name: getattr(asked, name) for name in OF_PODIUM}) == asked:
        raise BadInput("nothing was changed; approve it as it is, or change something")
    return order


async def refuse_impossible(podium: Podium, order: WorkOrder) -> None:
    """Raise `BadInput` for operations that could never be done, by the gate that will judge them."""
    from podium.jobs.sense.composition import sense_options
    from podium.jobs.sense.orders.worker import weigher

    if not order.ops:
        return
    weigh = await weigher(podium, sense_options(podium))
    if refused := weigh(order).refused:
        raise BadInput(f"the order could never be done: {refused}")


def _next_id(order_id: str) -> str:
    match = _EDITION.search(order_id)
    ending = f"-R{int(match[1]) + 1 if match else 2}"
    return _EDITION.sub("", order_id)[: MAX_ID - len(ending)] + ending


def _plain(text: str) -> Json:
    from podium.jobs.sense.io.plain_yaml import NotPlain, parse_plain

    try:
        return parse_plain(text.encode(errors="surrogatepass"))
    except NotPlain as error:
        raise BadInput(f"the order cannot be read: {error}") from None


def _dumped(record: Json, *, unicode: bool) -> str:
    """As YAML, texts of several lines as such."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_representer(str, _represented)
    return yaml.dump(
        record, Dumper=Dumper, sort_keys=False, width=100, indent=2, allow_unicode=unicode
    )


def _represented(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _problems_text(error: ValidationError) -> str:
    messages = (
        f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors()
    )
    return "; ".join(messages)[:1000]
