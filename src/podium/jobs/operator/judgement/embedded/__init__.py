"""The classifier that needs no model, built from a pack's registry alone."""

from podium.jobs.operator.judgement.embedded.classifier import EmbeddedClassifier, Extractor

__all__ = ["EmbeddedClassifier", "Extractor"]
