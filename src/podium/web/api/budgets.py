"""`/api/v1`: budgets."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["budgets"])
