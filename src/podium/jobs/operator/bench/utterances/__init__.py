"""Messages typed and dictated in a roofing office in Melbourne, each with the reading a sensible colleague would give it.

Three sets of the same kinds in different words: classifiers are tuned on `tuning` and `practice`, and
measured on `held_out`. See the README beside this file before adding to any.
"""

from podium.jobs.operator.bench.utterances.cases import (
    HALVES,
    NOW,
    Half,
    UtteranceCase,
    utterance_cases,
)

__all__ = ["HALVES", "NOW", "Half", "UtteranceCase", "utterance_cases"]
