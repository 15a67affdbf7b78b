"""`/api/v1`: candidates."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["candidates"])
