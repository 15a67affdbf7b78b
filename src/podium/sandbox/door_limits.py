"""How many calls a turn may make, and how often one may come to nothing new."""

from __future__ import annotations

from collections import Counter

from podium.domain.asking import Stop, StopKind, TurnLimits
from podium.domain.errors import CallRefused
from podium.domain.gating import Call, Outcome, Refusal, digest_of

FINISH = "finish"
"""An agent that has used up its calls may still say that it is done."""


class CallLimits:
    """Counts a turn's calls. Once a limit is reached every further call is refused."""

    def __init__(self, limits: TurnLimits) -> None:
        self._most = limits.tool_calls
        self._same = limits.same_results
        self._made = 0
        self._seen: Counter[str] = Counter()
        self.stopped: Stop | None = None

    def begin(self, tool: str) -> None:
        """Count a wish. Raises `CallRefused` when the turn may have no more of them."""
        if tool == FINISH and (self.stopped is None or self.stopped.kind == "tool_calls"):
            return
        if self.stopped is None and self._most is not None and self._made >= self._most:
            self._stop("tool_calls", f"all {self._most} calls that the turn may make were made")
        if self.stopped is not None:
            raise CallRefused(f"the limit is reached: {self.stopped.reason}; end your turn now")
        self._made += 1

    def ended(self, call: Call, answer: Outcome | Refusal, *, changes: bool) -> None:
        """Learn what came of a call. `changes` says that it may have changed something.

        What was seen before such a call says nothing about what will be seen after it.
        """
        if self._same is None:
            return
        came_to = digest_of([call.fingerprint, _result(answer)])
        times = self._seen[came_to] + 1
        if changes and isinstance(answer, Outcome) and answer.ok:
            self._seen.clear()
        self._seen[came_to] = times
        if times >= self._same and self.stopped is None and call.tool != FINISH:
            self._stop(
                "same_results", f"{call.tool!r} was called {times} times with the same result"
            )

    def _stop(self, kind: StopKind, reason: str) -> None:
        self.stopped = Stop(kind=kind, reason=reason)


def _result(answer: Outcome | Refusal) -> object:
    if isinstance(answer, Refusal):
        return [answer.decision.rule, answer.decision.reason]
    return [answer.ok, answer.result, answer.error]
