"""OpenAPI description of the API, for people who are signed in."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from podium import __version__
from podium.core.model import Json
from podium.web.access.authentication import Viewer
from podium.web.api.requests import Problem

router = APIRouter(include_in_schema=False)

PREFIX = "/api/v1"
PROBLEM = "application/problem+json"
PROBLEMS = {
    "400": "Malformed request.",
    "401": "Authentication required.",
    "403": "Not allowed.",
    "404": "Not found.",
    "405": "Method not allowed.",
    "408": "The request arrived too slowly.",
    "409": "Not possible now, or the short ID is ambiguous.",
    "413": "The body is too large.",
    "414": "The path is too long.",
    "421": "Unknown host name.",
    "422": "Invalid request.",
    "429": "Rate limit exceeded; retry after `Retry-After`.",
    "431": "The headers are too large.",
    "503": "Too many open streams.",
}
DESCRIPTION = """HTTP interface to everything that the command line can do with runs.

Create a token with `podium serve tokens add NAME --role …` and send it with every request: `Authorization: Bearer pod_…`.
"""


def name_of(route: APIRoute) -> str:
    """Name an operation after its function."""
    return route.name


@router.get("/openapi.json")
async def show_schema(request: Request, person: Viewer) -> dict[str, Json]:
    return openapi(request.app.routes)


def openapi(routes: list[BaseRoute]) -> dict[str, Any]:
    """Build the description of these routes, with the same problem responses for all."""
    schema = get_openapi(
        title="Podium", version=__version__, description=DESCRIPTION, routes=routes
    )
    parts = schema.setdefault("components", {})
    shapes = parts.setdefault("schemas", {})
    shapes.pop("HTTPValidationError", None)
    shapes.pop("ValidationError", None)
    shapes["Problem"] = Problem.model_json_schema()
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    parts["responses"] = {code: _problem(description) for code, description in PROBLEMS.items()}
    schema["security"] = [{"token": []}]
    for operations in schema["paths"].values():
        for operation in operations.values():
            for code in PROBLEMS:
                operation["responses"][code] = {"$ref": f"#/components/responses/{code}"}
    return schema


def _problem(description: str) -> dict[str, Json]:
    shape = {"$ref": "#/components/schemas/Problem"}
    return {"description": description, "content": {PROBLEM: {"schema": shape}}}
