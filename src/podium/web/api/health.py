"""`/api/v1`: health."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["health"])
