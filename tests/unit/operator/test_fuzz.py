"""Whatever is said without approval: five blocks come back, and nothing that needs approval is done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest
from hypothesis import HealthCheck, given, settings

from podium.core.decisions import Tier
from podium.core.model import Json
from podium.jobs.operator.answer_blocks import blocks
from podium.jobs.operator.bench.cases import utterance_cases
from podium.jobs.operator.models import OperatorAnswer
from tests.soaking import in_soak
from tests.unit.operator.messages import contexts, messages
from tests.unit.operator.office import Office, open_office

NEEDS_APPROVAL = Tier.T2
TITLES = ("[INTENT]", ("[PLAN]", "[RESULT]"), "[TOOL IMPACT]", "[RISKS / GATES]", "[NEXT ACTIONS]")


class Fuzzed:
    """An office on an event loop of its own, so that many messages go to one operator."""

    def __init__(self, runner: asyncio.Runner, office: Office) -> None:
        self.office = office
        self._runner = runner
        self._guarded = office.guarded()

    def hears(self, message: str, context: Json) -> OperatorAnswer:
        return self._runner.run(
            self.office.operator.process(message, "execute", context, explicit_approval=False)
        )

    def must_be_untouched(self) -> None:
        """Nothing that needs approval left a trace, neither in the record nor in the database."""
        receipts = self._runner.run(self.office.receipts())
        done = {receipt.tool for receipt in receipts if receipt.status == "completed"}
        done |= self.office.performed()
        assert [tool for tool in done if self.office.tier(tool) >= NEEDS_APPROVAL] == []
        assert self.office.guarded() == self._guarded


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        folder = tmp_path_factory.mktemp("office")
        office = runner.run(stack.enter_async_context(open_office(folder)))
        yield Fuzzed(runner, office)
        runner.run(stack.aclose())


def _must_be_harmless(answer: OperatorAnswer, office: Office) -> None:
    lines = blocks(answer).splitlines()
    found = [line for line in lines if line.startswith("[") and line.endswith("]")]
    assert len(found) == len(TITLES), found
    assert all(title in wanted for title, wanted in zip(found, TITLES, strict=True)), found
    done = [result.tool for result in answer.results if result.status == "completed"]
    assert [tool for tool in done if office.tier(tool) >= NEEDS_APPROVAL] == []
    if answer.plan and answer.plan.requires_approval:
        assert answer.status in ("awaiting_approval", "quality_gate_failed", "clarify")


def _fuzz(fuzzed: Fuzzed, count: int) -> None:
    @settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(messages, contexts)
    def harmless(message: str, context: Json) -> None:
        _must_be_harmless(fuzzed.hears(message, context), fuzzed.office)

    harmless()
    fuzzed.must_be_untouched()


def test_forty_messages_do_nothing_that_needs_approval(fuzzed: Fuzzed) -> None:
    _fuzz(fuzzed, 40)


@pytest.mark.soak
def test_ten_thousand_messages_do_nothing_that_needs_approval(fuzzed: Fuzzed) -> None:
    _fuzz(fuzzed, 10_000)


@pytest.mark.soak
@pytest.mark.parametrize("every", [30, in_soak(1)])
def test_no_sentence_of_the_corpus_does_what_needs_approval(fuzzed: Fuzzed, every: int) -> None:
    for case in utterance_cases()[::every]:
        _must_be_harmless(fuzzed.hears(case.say, case.context), fuzzed.office)
    fuzzed.must_be_untouched()
