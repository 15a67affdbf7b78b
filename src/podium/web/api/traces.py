"""`/api/v1`: traces."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["traces"])
