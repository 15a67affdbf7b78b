"""Factory of classifiers: a model by OpenRouter, an agent of podium.yaml, or the embedded one."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from podium.app.agent_builder import KINDS, agent_deps, build_medium, options_of
from podium.app.dry_run import ClosedDoor, NoDoors
from podium.core.errors import BadInput
from podium.core.turns import Reply, Turn, TurnLimits
from podium.ports import Agent

if TYPE_CHECKING:
    from podium.agents import AgentDeps
    from podium.app.app import Podium
    from podium.core.packs import Pack
    from podium.jobs.operator.judgement.ground_check import FindUngrounded
    from podium.jobs.operator.options import OperatorOptions
    from podium.jobs.operator.ports import Classifier


AUTO, EMBEDDED, MODEL = "auto", "embedded", "model"
DEFAULT_MODEL = "anthropic/claude-3.5-sonnet"
KEY = "OPENROUTER_API_KEY"
MAX_ANSWER_TOKENS = 4000
"""OpenRouter asks for credit for the longest answer that a model can give, unless a shorter one is named."""
NO_TOOLS = "no tools are available while a message is read; give the answer"


async def build_classifier(podium: Podium, pack: Pack, options: OperatorOptions) -> Classifier:
    """Build the classifier that the options name. Neither the database nor a run is touched, now or later.

    Raises `BadInput` for an agent that nobody has configured and for `model` without a key, and
    `NotPossibleNow` for an agent of a project's file that nobody has trusted.
    """
    from podium.jobs.operator.judgement.embedded import EmbeddedClassifier
    from podium.jobs.operator.judgement.fields import FieldExtractor

    embedded = EmbeddedClassifier(pack, FieldExtractor(pack))
    chosen = _chosen(podium, options.classifier)
    if chosen == EMBEDDED:
        return embedded
    from podium.jobs.operator.judgement.embedded.tool_score import Shortlist
    from podium.jobs.operator.judgement.model_classifier import ModelClassifier, WithFallback

    agent, limits = open_router(podium) if chosen == MODEL else configured_agent(podium, chosen)
    model = ModelClassifier(agent, pack, shortlist=Shortlist(pack.registry), limits=limits)
    return WithFallback(model, embedded)


def grounding_check_for(pack: Pack) -> FindUngrounded:
    """Build the check that marks the parts of a reading that nobody said, by Podium's own reading of the message."""
    from podium.jobs.operator.judgement.embedded import EmbeddedClassifier
    from podium.jobs.operator.judgement.fields import FieldExtractor
    from podium.jobs.operator.judgement.ground_check import GroundingCheck

    extract = FieldExtractor(pack)
    return GroundingCheck(pack, extract, EmbeddedClassifier(pack, extract).reading)


def _chosen(podium: Podium, requested: str) -> str:
    has_key = bool(podium.environ.get(KEY))
    if requested == AUTO:
        return MODEL if has_key else EMBEDDED
    if requested == MODEL and not has_key:
        raise BadInput(
            f"the classifier {MODEL!r} needs OpenRouter, and {KEY} is not set; set it, name an "
            f"agent of podium.yaml, or use {EMBEDDED!r}, which needs no model"
        )
    return requested


def agent_named(podium: Podium, name: str) -> Agent:
    """Build the agent that `model` or an agent of podium.yaml stands for. Raises as `build_classifier` does."""
    chosen = _chosen(podium, name)
    return (open_router(podium) if chosen == MODEL else configured_agent(podium, chosen))[0]


def open_router(podium: Podium) -> tuple[Agent, TurnLimits]:
    """Build an agent on OpenRouter from the user's environment. A project's file cannot change it."""
    from podium.agents import AgentOptions, ApiAgent
    from podium.jobs.operator.judgement.model_classifier import READING_LIMITS

    model = podium.environ.get("OPENROUTER_MODEL") or DEFAULT_MODEL
    options = AgentOptions(
        name=f"openrouter:{model}",
        model=model,
        base_url=podium.environ.get("OPENROUTER_BASE_URL", ""),
        env={KEY: f"secret://{KEY}"},
        options={
            "provider": "openrouter",
            "max_output_tokens": MAX_ANSWER_TOKENS,
            # Arguments have free names, and some of its providers close every object of a schema.
            "native_schema": False,
        },
    )

    def build(deps: AgentDeps) -> Agent:
        return ApiAgent(options, deps, podium.environ.__getitem__)

    build(
        agent_deps(podium, NoDoors())
    )  # an address that cannot be used is told before anything is read
    return ReadingAgent(podium, options.name, build), READING_LIMITS


def configured_agent(podium: Podium, name: str) -> tuple[Agent, TurnLimits]:
    """Build an agent of podium.yaml, with the timeout of its settings. Raises as `build_medium` does."""
    from podium.jobs.operator.judgement.model_classifier import READING_LIMITS

    build_medium(podium, name, NoDoors())
    settings, options = podium.settings.agents[name], options_of(podium, name)

    def build(deps: AgentDeps) -> Agent:
        return KINDS[settings.kind](podium, settings, options, deps)

    scripted, limits = settings.kind == "scripted", settings.limits
    if "timeout_seconds" not in settings.model_fields_set:
        # What an agent may take for work that it does is too long for a person who waits.
        limits = limits.model_copy(update={"seconds": READING_LIMITS.seconds})
    return ReadingAgent(podium, name, build, with_nonce=not scripted), limits


class ReadingAgent:
    """An agent that is asked in an empty folder, with all tools refused.

    The project's record is not opened, and nothing of what was said is kept.
    """

    def __init__(
        self,
        podium: Podium,
        name: str,
        build: Callable[[AgentDeps], Agent],
        *,
        with_nonce: bool = True,
    ) -> None:
        """`with_nonce` is off for scripts, which were written before a nonce was made."""
        self._podium = podium
        self._name = name
        self._build = build
        self._with_nonce = with_nonce

    @property
    def name(self) -> str:
        return self._name

    async def ask(self, turn: Turn) -> Reply:
        from podium.agents import sweep_homes
        from podium.app.dry_run import scratch_store
        from podium.sandbox import HookServer
        from podium.store import StoreJournal

        podium = self._podium
        run_id = f"{turn.run_id}-{secrets.token_hex(8)}"
        with tempfile.TemporaryDirectory(prefix="podium-reading-") as folder:
            async with scratch_store(podium) as store:
                closed = ClosedDoor(NO_TOOLS)
                toolbox = podium.toolbox_behind(closed, Path(folder))
                doors = HookServer(
                    closed, toolbox, StoreJournal(store), redact=podium.redactor.text
                )
                deps = replace(agent_deps(podium, doors), transcripts=NoTranscripts())
                asked = turn.model_copy(update={"run_id": run_id, "workspace": folder})
                try:
                    return await self._contracted(deps).ask(asked)
                finally:
                    homes = podium.folders.homes
                    await asyncio.to_thread(sweep_homes, homes, run_id.__eq__)

    def _contracted(self, deps: AgentDeps) -> Agent:
        from podium.agents import ContractedAgent

        medium, redact = self._build(deps), self._podium.redactor.text
        if self._with_nonce:
            return ContractedAgent(medium, redact=redact)
        return ContractedAgent(medium, new_nonce=None, redact=redact)


class NoTranscripts:
    """Transcripts that keep nothing: a message that is only read leaves no trace."""

    @contextmanager
    def open(self, turn: Turn, agent: str) -> Iterator[NoTranscript]:
        yield NoTranscript()


class NoTranscript:
    """A transcript that keeps nothing."""

    path = ""

    def write(self, line: str) -> None:
        """Discard the line."""
