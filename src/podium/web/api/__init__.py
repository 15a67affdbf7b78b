"""The typed API, `/api/v1`: the use cases of the command line, for programs."""

from fastapi import APIRouter

from podium.web.api import (
    agents,
    approvals,
    budgets,
    candidates,
    events,
    health,
    receipts,
    runs,
    schema,
    starting,
    traces,
)

api_router = APIRouter(generate_unique_id_function=schema.name_of)
for _part in (
    runs,
    starting,
    events,
    approvals,
    candidates,
    receipts,
    traces,
    agents,
    budgets,
    health,
    schema,
):
    api_router.include_router(_part.router)
