"""Reads fields out of words: phones, dates, sums, names, places and ids, and what a tool's arguments are."""

from __future__ import annotations

from podium.flows.operator.judgement.fields.entity import Entity
from podium.flows.operator.judgement.fields.extracting import FieldExtractor
from podium.flows.operator.judgement.fields.finding import entities

__all__ = ["Entity", "FieldExtractor", "entities"]
