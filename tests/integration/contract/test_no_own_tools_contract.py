"""The promises of function-calling agents, kept by the real CLIs without hands.

Left out is what a CLI answers by itself, before Podium hears of it: names of tools that are not there,
and arguments that do not fit a schema.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.integration.contract import test_function_calling_contract as promised
from tests.integration.contract.no_own_tools_callers import MCP_ONLY
from tests.unit.contract.function_calling_harness import Caller, CallingHarness

Promise = Callable[[Caller, CallingHarness], Awaitable[None]]

PROMISES: list[Promise] = [
    promised.test_a_call_is_performed_and_its_result_reaches_the_model,
    promised.test_several_calls_of_one_answer_are_performed_in_their_order,
    promised.test_refused_call_is_reported_in_words_and_the_others_are_performed,
    promised.test_tool_that_breaks_is_reported_as_an_error,
    promised.test_tool_that_takes_too_long_is_reported_as_an_error,
    promised.test_a_result_that_is_too_large_is_cut_and_says_so,
    promised.test_finish_ends_the_turn_with_its_summary,
    promised.test_plain_words_end_the_turn,
    promised.test_the_same_call_with_the_same_result_stops_the_turn,
]


@pytest.mark.soak
@pytest.mark.parametrize("caller", MCP_ONLY, ids=lambda caller: caller.name)
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__[5:40])
async def test_a_cli_without_hands_keeps_the_promise(
    promise: Promise, caller: Caller, tmp_path: Path
) -> None:
    await promise(caller, CallingHarness(tmp_path))
