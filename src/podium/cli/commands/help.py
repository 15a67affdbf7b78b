"""`podium help`."""

from __future__ import annotations

import re
from difflib import get_close_matches
from os.path import normpath
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from podium.cli.app import all_commands, command_app
from podium.cli.screen import Screen
from podium.core.errors import BadInput
from podium.platform import shipped_folder

app = command_app()

FOLDERS = {"tutorials": "job", "how-to": "how-to"}
"""Folders of docs/ whose pages are topics, with the kind of topic that each holds."""
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


class HelpTopic(NamedTuple):
    name: str
    kind: str
    page: Path

    @property
    def title(self) -> str:
        with self.page.open(encoding="utf-8") as lines:
            return next(lines).removeprefix("# ").strip()

    @property
    def text(self) -> str:
        """The page, with links to other topics as commands and without the addresses of other pages."""
        pages = {topic.page: topic.name for topic in topics().values()}

        def plain(link: re.Match[str]) -> str:
            text, target = link.groups()
            if "://" in target:
                return f"{text} ({target})"
            name = pages.get(Path(normpath(self.page.parent / target.partition("#")[0])))
            return f"{text} (`podium help {name}`)" if name else text

        return _LINK.sub(plain, self.page.read_text(encoding="utf-8"))


def topics() -> dict[str, HelpTopic]:
    """Topics by name, jobs first: one for each page of the documentation that is shipped."""
    docs = shipped_folder("docs")
    return {
        page.stem: HelpTopic(page.stem, kind, page)
        for folder, kind in FOLDERS.items()
        for page in sorted((docs / folder).glob("*.md"))
        if page.stem != "README"
    }


def _complete(incomplete: str) -> list[str]:
    return [name for name in topics() if name.startswith(incomplete)]


@app.command(name="help")
def help_(
    context: typer.Context,
    topic: Annotated[
        str,
        typer.Argument(
            metavar="[TOPIC]",
            help="Topic to read; without it, list them.",
            autocompletion=_complete,
        ),
    ] = "",
) -> None:
    """Read tutorials and guides offline.

    `podium COMMAND --help` shows the options of a command.

    \b
    Example:
      podium help
      podium help pipeline
      podium help resume-after-a-reboot
    """
    screen = Screen(json=context.obj.json)
    available = topics()
    if not topic:
        record = [{"topic": t.name, "kind": t.kind, "title": t.title} for t in available.values()]
        rows = [(t.name, t.kind, t.title) for t in available.values()]
        screen.answer({"topics": record}, lambda: screen.table(("TOPIC", "KIND", "ABOUT"), rows))
        return
    if (chosen := available.get(topic.lower())) is None:
        raise BadInput(_unknown(topic, available))
    record_of_topic = {"topic": chosen.name, "title": chosen.title, "text": chosen.text}
    screen.answer(record_of_topic, lambda: screen.markdown(chosen.text))


def _unknown(topic: str, available: dict[str, HelpTopic]) -> str:
    if topic in all_commands():
        return f"{topic!r} is a command, not a topic: `podium {topic} --help`"
    near = get_close_matches(topic.lower(), available, n=1) or [
        n for n in available if topic.lower() in n
    ]
    proposal = f"did you mean `podium help {near[0]}`?" if near else "list them with `podium help`"
    return f"unknown topic {topic!r}; {proposal}"
