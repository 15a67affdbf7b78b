"""The pages, rendered here and kept fresh by the same events as the API's streams."""

from fastapi import APIRouter

from podium.web.pages import duet, entering, health, inbox, operator, run, runs, sense

pages_router = APIRouter()
for _part in (entering, inbox, runs, run, sense, operator, duet, health):
    pages_router.include_router(_part.router)
