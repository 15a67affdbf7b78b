"""A work order as the YAML that lies in inboxes."""

from __future__ import annotations

from podium.domain.model import Json
from podium.domain.orders import WorkOrder


def order_text(order: WorkOrder) -> str:
    """The same text for the same order, in the order of its fields; what is not set is left out."""
    # PyYAML takes a while to load, and most commands write no orders.
    import yaml

    record = order.model_dump(mode="json", exclude_defaults=True)
    return str(
        yaml.safe_dump(_plain(record), sort_keys=False, allow_unicode=True, width=100, indent=2)
    )


def _plain(value: Json) -> Json:
    """YAML has lists and no tuples."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
