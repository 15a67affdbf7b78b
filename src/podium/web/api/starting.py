"""`/api/v1`: starting."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["starting"])
