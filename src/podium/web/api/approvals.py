"""`/api/v1`: approvals."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["approvals"])
