"""`python -m benchmarks.conversations [FILE]`: score the operator on a corpus and print a table by kind of message."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.conversations.corpus import DEVELOPMENT, load_corpus
from benchmarks.conversations.runner import play
from benchmarks.conversations.scoring import Score, Verdict
from benchmarks.figures import median
from podium.core.model import Json


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conversations")
    parser.add_argument("file", nargs="?", type=Path, default=DEVELOPMENT)
    parser.add_argument("--json", action="store_true", help="figures and all verdicts as JSON")
    parser.add_argument(
        "--show-wrong", action="store_true", help="print each message that is not right"
    )
    parser.add_argument("--kind", help="only messages of this kind")
    parser.add_argument(
        "--singles", action="store_true", help="only the first message of each session"
    )
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpus = load_corpus(chosen.file)
        scores = asyncio.run(play(corpus, Path(folder), follow_ups=not chosen.singles))
    if chosen.kind:
        scores = [score for score in scores if chosen.kind in score.kinds]
    if not scores:
        parser.error("no message is of this kind")
    print(json.dumps(report(scores), indent=1) if chosen.json else "\n".join(table(scores)))
    if chosen.show_wrong and not chosen.json:
        print("\n".join(line for score in scores if not score.right for line in _wrong(score)))


def groups(scores: Sequence[Score]) -> dict[str, list[Score]]:
    """The scores by group: all, single messages, parts of sessions, then each kind."""
    named = {
        "all": list(scores),
        "single": [score for score in scores if score.alone],
        "first of a session": [score for score in scores if score.number == 1 and not score.alone],
        "follow-up": [score for score in scores if score.number > 1],
    }
    kinds = dict.fromkeys(kind for score in scores for kind in score.kinds if kind != "follow_up")
    named |= {kind: [score for score in scores if kind in score.kinds] for kind in sorted(kinds)}
    return {name: members for name, members in named.items() if members}


def figures(scores: Sequence[Score]) -> dict[str, Json]:
    counts = {
        verdict.value: sum(score.verdict is verdict for score in scores) for verdict in Verdict
    }
    precise = sum(score.right and score.precise for score in scores)
    return {"messages": len(scores), **counts, "right and precise": precise,
            "refused by a directive": sum(score.verdict is Verdict.REFUSED and score.by_directive for score in scores)}  # fmt: skip


def table(scores: Sequence[Score]) -> list[str]:
    names = [verdict.value for verdict in Verdict]
    lines = ["| kind | messages | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for name, members in groups(scores).items():
        row = figures(members)
        shares = (f"{row[verdict]} ({row[verdict] / len(members):.0%})" for verdict in names)
        lines.append(f"| {name} | {len(members)} | " + " | ".join(shares) + " |")
    whole = figures(scores)
    lines.append(
        f"questions that ask for the expected thing: {whole['right and precise']} of {whole['right']} right answers are precise; "
        f"{whole['refused by a directive']} false refusals are by a directive; "
        f"p50 {median([score.seconds for score in scores]) * 1000:.1f} ms with records looked up"
    )
    return lines


def report(scores: Sequence[Score]) -> dict[str, Json]:
    return {
        "groups": {name: figures(members) for name, members in groups(scores).items()},
        "milliseconds_p50": median([score.seconds for score in scores]) * 1000,
        "messages": [score.model_dump(mode="json") for score in scores],
    }


def _wrong(score: Score) -> list[str]:
    return [
        f"\n{score.verdict.upper()} {score.session}/{score.number} {list(score.kinds)}: {score.text}",
        f"  expected {score.expected}", f"  answered {score.answered}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
