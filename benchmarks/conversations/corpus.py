"""Corpus of conversations: messages with their records and what a careful colleague would make of them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar

import yaml
from pydantic import Field

from podium.core.errors import BadInput
from podium.core.model import FrozenModel, Json

DEVELOPMENT = Path(__file__).with_name("development.yaml")
AnyModel = TypeVar("AnyModel", bound=FrozenModel)


class ExpectedCall(FrozenModel):
    tool: str
    arguments: dict[str, Json]


class Outcome(FrozenModel):
    """One right answer. Exactly one of the first four is there."""

    calls: tuple[ExpectedCall, ...] | None = None
    ask: str | None = None
    refuse: str | None = None
    answer_only: bool = False
    missing: tuple[str, ...] = ()
    """With `ask`: arguments that are asked for."""
    offers: tuple[str, ...] = ()
    """With `ask`: records to choose from."""
    not_used: tuple[str, ...] = ()
    """Parts of the message that the answer must list as not used."""
    says: str = ""


class Expectation(Outcome):
    acceptable: tuple[Outcome, ...] = ()

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        return (self, *self.acceptable)


class Turn(FrozenModel):
    text: str
    kinds: tuple[str, ...]
    expect: Expectation
    after: Literal["done", "pending"] | None = None
    """What happened to the expected calls before the next message."""
    shows: tuple[str, ...] = ()
    """Records in the order in which the answer lists them."""


class Session(FrozenModel):
    id: str
    packs: tuple[str, ...]
    world: str
    records: tuple[dict[str, Json], ...] = ()
    """All records that exist before the first message."""
    turns: tuple[Turn, ...]


class Corpus(FrozenModel):
    now: datetime

    worlds: dict[str, tuple[dict[str, Json], ...]]
    sessions: tuple[Session, ...] = Field(min_length=1)


def load_corpus(path: Path) -> Corpus:
    """Load a corpus, with the records of its world in each session. Raises `BadInput`."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        corpus = Corpus.model_validate(
            {name: document[name] for name in ("now", "worlds", "sessions")}
        )
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        raise BadInput(f"{path} is not a corpus of conversations: {error}") from error
    return corpus.model_copy(
        update={"sessions": tuple(_with_world(session, corpus) for session in corpus.sessions)}
    )


def _with_world(session: Session, corpus: Corpus) -> Session:
    records = (*corpus.worlds[session.world], *session.records)
    return session.model_copy(update={"records": records})
