"""Commands `podium pack bench` and `paraphrase`: the corpus of a pack, and what commands of packs share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.context import CliContext
from podium.cli.screen import Screen
from podium.core.model import Json
from podium.core.packs import Pack
from podium.render.text import counted, escaped_line
from podium.tools.packs import CORPUS_FILE, find_pack, load_pack, shipped_packs

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.jobs.operator.bench.pack_corpus import ClassCount, CorpusScore

Name = Annotated[str, typer.Argument(metavar="PACK", help="A pack's name, or its folder.")]
Paraphraser = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="Ask this agent of podium.yaml, or `model` for OpenRouter, for paraphrases of the examples.",
    ),
]


def pack_folder(cli: CliContext, name: str) -> Path:
    """Return the pack's folder, relative when it is below the current one."""
    project = cli.configuration.folders.project
    folder = find_pack(name, project=project, shipped=shipped_packs())
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def summary(pack: Pack) -> dict[str, Json]:
    return {
        "pack": pack.name,
        "version": pack.registry.version,
        "description": pack.registry.description,
        "digest": pack.digest,
    }


def bench(
    context: typer.Context,
    name: Name,
    at_least: Annotated[
        float,
        typer.Option(
            "--at-least", metavar="PERCENT", min=0, max=100, help="Fail below this share."
        ),
    ] = 0.0,
    show_wrong: Annotated[
        bool, typer.Option("--show-wrong", help="Show each misread sentence.")
    ] = False,
) -> None:
    """Score how well the embedded classifier reads the corpus of a pack, corpus.jsonl in its folder.

    A sentence counts as right if it is read as exactly its calls, with exactly their arguments. Exits with 1
    if less than PERCENT are right, or a misread sentence would change records at once, without an approval.

    \b
    Example:
      podium pack bench packs/bikes --show-wrong
      podium pack bench packs/bikes --at-least 90 --json
    """
    from podium.jobs.operator.bench.pack_corpus import corpus_of, score_corpus

    cli = CliContext(context.obj, lenient=True)
    path = pack_folder(cli, name)
    loaded = load_pack(path)
    score = score_corpus(loaded, corpus_of(loaded, path))
    record = {**summary(loaded), **_score_record(score)}
    cli.screen.answer(record, lambda: _print_score(cli.screen, score, show_wrong))
    if score.total.share * 100 < at_least:
        cli.screen.stderr_line(f"podium: {score.total.share:.1%} is less than {at_least:g}%")
        raise typer.Exit(1)
    if score.total.wrong_at_once:
        raise typer.Exit(1)


def _score_record(score: CorpusScore) -> dict[str, Json]:
    return {
        "total": _count_record(score.total),
        "classes": [_count_record(count) for count in score.classes],
        "milliseconds": {"p50": score.p50 * 1000},
        "misread": [
            {
                "line": sentence.line,
                "class": sentence.kind,
                "say": sentence.expectation.say,
                "expected": sentence.expectation.text,
                "read": read.text,
                "differences": list(read.differences),
            }
            for sentence, read in score.misread
        ],
    }


def _count_record(count: ClassCount) -> dict[str, Json]:
    return {**count.model_dump(), "share": round(count.share, 4)}


def _print_score(screen: Screen, score: CorpusScore, show_wrong: bool) -> None:
    headers = ("CLASS", "SENTENCES", "RIGHT", "SHARE", "ASKED", "REFUSED", "WRONG", "AT ONCE")
    rows = [
        (
            escaped_line(count.name),
            str(count.sentences),
            str(count.right),
            f"{count.share:.1%}",
            str(count.asked),
            str(count.refused),
            str(count.wrong),
            str(count.wrong_at_once),
        )
        for count in (*score.classes, score.total)
    ]
    screen.table(headers, rows)
    screen.line(f"time to read and judge a sentence: {score.p50 * 1000:.1f} ms (p50)")
    for sentence, read in score.misread if show_wrong else ():
        screen.line(
            escaped_line(f"\n{CORPUS_FILE}:{sentence.line}: {sentence.expectation.say}".strip())
        )
        screen.line(escaped_line(f"  expected: {sentence.expectation.text}"))
        screen.line(escaped_line(f"  read:     {read.text}"))


def paraphrase(context: typer.Context, name: Name, agent: Paraphraser = "") -> None:
    """Add paraphrases of a pack's examples to its corpus: by an agent, or by rules without one.

    Without --agent each example is added in lower case and with a typo. Review what is added; `podium pack bench`
    scores it. The corpus is a file of the pack, so trust the pack again afterwards.

    \b
    Example:
      podium pack paraphrase packs/bikes
      podium pack paraphrase packs/bikes --agent gemini
    """
    cli = CliContext(context.obj, lenient=not agent)
    path = pack_folder(cli, name)
    added = paraphrase_examples(cli, load_pack(path), path, agent)
    record = {"folder": str(path), "file": CORPUS_FILE, "added": added}
    text = f"added {counted(added, 'sentence')} to {path / CORPUS_FILE}; next: `podium pack bench {path}`"
    cli.screen.answer(record, lambda: cli.screen.line(text))


def paraphrase_examples(cli: CliContext, pack: Pack, folder: Path, agent: str) -> int:
    """Add to the corpus, and return how many sentences were new."""
    from podium.jobs.operator.bench.paraphrase import (
        append_to_corpus,
        model_paraphrases,
        rule_paraphrases,
    )

    entries = rule_paraphrases(pack)
    if agent:

        async def ask(podium: Podium) -> list[dict[str, Json]]:
            from podium.jobs.operator.classifier_factory import agent_named

            return await model_paraphrases(pack, agent_named(podium, agent))

        entries = cli.run(ask)
    return append_to_corpus(folder, entries)
