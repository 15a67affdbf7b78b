"""The classifier that needs no model, built from a pack's registry alone."""

from podium.flows.operator.judgement.embedded.classifier import EmbeddedClassifier
from podium.flows.operator.judgement.embedded.extractor import Extractor

__all__ = ["EmbeddedClassifier", "Extractor"]
