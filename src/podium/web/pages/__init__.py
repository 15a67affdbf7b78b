"""The pages, rendered here and kept fresh by the same events as the API's streams."""

from fastapi import APIRouter

from podium.jobs.duet.pages import duet_page
from podium.jobs.operator import page as operator_page
from podium.jobs.sense import page as sense_page
from podium.web.pages import health, inbox, run, runs, sign_in

pages_router = APIRouter()
for _part in (sign_in, inbox, runs, run, operator_page, sense_page, duet_page, health):
    pages_router.include_router(_part.router)
