"""Reads fields out of words: phones, dates, sums, names, places and ids, and what a tool's arguments are."""

from __future__ import annotations

from podium.jobs.operator.judgement.fields.extractor import FieldExtractor, entities
from podium.jobs.operator.judgement.fields.tokenized_text import Entity

__all__ = ["Entity", "FieldExtractor", "entities"]
