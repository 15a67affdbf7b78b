"""The typed API, `/api/v1`: the use cases of the command line, for programs."""

from fastapi import APIRouter

from podium.jobs.sense import api
from podium.web.api import (
    agents,
    approvals,
    budgets,
    events,
    health,
    receipts,
    runs,
    schema,
    submissions,
    traces,
)

api_router = APIRouter(generate_unique_id_function=schema.name_of)
for _part in (
    runs,
    submissions,
    events,
    approvals,
    api,
    receipts,
    traces,
    agents,
    budgets,
    health,
    schema,
):
    api_router.include_router(_part.router)
