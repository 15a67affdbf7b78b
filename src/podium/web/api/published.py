"""`python -m podium.web.api.published > docs/openapi.json`: the API's description, as it is published."""

from __future__ import annotations

import json
import sys
from typing import Any

from fastapi import FastAPI

from podium.web.api import api_router
from podium.web.api.schema import PREFIX, openapi


def published() -> dict[str, Any]:
    """The description, without a project or a console."""
    app = FastAPI()
    app.include_router(api_router(), prefix=PREFIX)
    return openapi(app.routes)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(published(), indent=1) + "\n")
