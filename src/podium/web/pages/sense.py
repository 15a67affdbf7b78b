"""The page: sense."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
