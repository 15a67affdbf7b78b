"""The scope of works: an inspection's findings as a text that a quote can rest on."""

from __future__ import annotations

from .records import Row

_SEVERITIES = ("critical", "high", "medium", "low", None)
_WORDS = {
    "critical": "at once",
    "high": "soon",
    "medium": "with the next works",
    "low": "when convenient",
}


def scope_of_works(inspection: Row, items: list[Row]) -> str:
    """The worst first. The same findings give the same text."""
    defects = [item for item in items if item["kind"] == "defect"]
    measurements = [item for item in items if item["kind"] == "measurement"]
    parts = [_heading(inspection)]
    if defects:
        defects.sort(key=lambda item: _SEVERITIES.index(item["severity"]))
        parts.append("\n".join(["Works", *(_defect(n, item) for n, item in enumerate(defects, 1))]))
    if measurements:
        parts.append("\n".join(["Measurements", *map(_measurement, measurements)]))
    return "\n\n".join(parts)


def _heading(inspection: Row) -> str:
    facts = [
        f"Scope of works: {inspection['site_address'] or 'address not recorded'}",
        f"Roof: {inspection['roof_type']}" if inspection["roof_type"] else "",
        f"Inspected on {inspection['inspected_on']}" if inspection["inspected_on"] else "",
        f"by {inspection['inspector']}" if inspection["inspector"] else "",
    ]
    return "\n".join(fact for fact in facts if fact)


def _defect(number: int, item: Row) -> str:
    severity = item["severity"]
    urgency = f" ({severity}: {_WORDS[severity]})" if severity else ""
    photos = len(item["asset_ids"])
    shown = f" [{photos} photo{'s' if photos > 1 else ''}]" if photos else ""
    notes = f": {item['notes']}" if item["notes"] else ""
    return f"{number}. {item['label']}{urgency}{shown}{notes}"


def _measurement(item: Row) -> str:
    value = f"{item['value']:.12g}" if item["value"] is not None else "not measured"
    unit = f" {item['unit']}" if item["unit"] else ""
    notes = f" ({item['notes']})" if item["notes"] else ""
    return f"- {item['label']}: {value}{unit}{notes}"
