"""`/api/v1`: receipts."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["receipts"])
