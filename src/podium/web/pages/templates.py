"""Templates and their filters; everything is escaped."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from podium.core.ids import short_id
from podium.render.event import shorten
from podium.render.text import counted, escaped_line, escaped_text, safe_text
from podium.web.access.authentication import (
    FORM_FIELD,
    FORM_HEADER,
    cookie_of,
    form_cookie_of,
    person_of,
)
from podium.web.context import web_context

TEMPLATES = Path(__file__).parent.parent / "templates"
MINUTE, HOUR, DAY = 60, 3600, 86_400


def ago(at: datetime | None, now: datetime | None = None) -> str:
    """Format a time relative to now, in one unit: `3 min ago`, `in 2 h`."""
    if at is None:
        return ""
    seconds = ((now or datetime.now(UTC)) - at).total_seconds()
    duration = span(abs(seconds))
    return f"{duration} ago" if seconds >= 0 else f"in {duration}"


def span(seconds: float) -> str:
    """Format a duration in one unit."""
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds / HOUR:.0f} h" if seconds < 2 * DAY else f"{seconds / DAY:.0f} days"


def money(usd: float) -> str:
    """Format dollars, with more decimals for small sums."""
    return f"${usd:.2f}" if usd >= 1 or not usd else f"${usd:.4f}"


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        ago=ago,
        span=span,
        money=money,
        short=short_id,
        shorten=shorten,
        shown=escaped_text,
        shown_line=escaped_line,
        safe=safe_text,
        counted=counted,
    )
    return environment


environment = _environment()


def render(name: str, **values: object) -> str:
    """Render a template as text, for live updates of open pages."""
    return environment.get_template(name).render(**values)


def page(request: Request, name: str, *, status_code: int = 200, **values: object) -> HTMLResponse:
    """Render a page or a part of one, with the common values."""
    context = web_context(request)
    cookie, person = form_cookie_of(request), person_of(request)
    # Whoever has a session of their own beside a link's may open more than its card.
    roams = person is not None and (not person.card or cookie != cookie_of(request))
    common = {
        "person": person,
        "roams": roams,
        "home": f"/cards/{person.card}" if person and not roams else "/",
        "form_token": context.sessions.form_token(cookie) if cookie else "",
        "form_field": FORM_FIELD,
        "form_header": FORM_HEADER,
        "here": request.scope["path"],
        "now": context.podium.clock.now(),
        "project": context.podium.folders.project.name,
    }
    return HTMLResponse(render(name, **common, **values), status_code)
