"""What a roofing office in Melbourne types and dictates, each with what a sensible colleague would make of it.

Two halves of the same kinds in different words: classifiers are tuned on the first and measured on
the second. See the README beside this file before adding to either.
"""

from podium.testing.utterances.cases import (
    HALVES,
    NOW,
    Half,
    UtteranceCase,
    utterance_cases,
)

__all__ = ["HALVES", "NOW", "Half", "UtteranceCase", "utterance_cases"]
