"""Counter of playbooks that ended."""

from __future__ import annotations

from collections.abc import Sequence

from podium.core.events import Event
from podium.jobs.playbook.events import PlaybookEnded
from podium.telemetry.event_feed import HostedRun
from podium.telemetry.exposition import CounterFamily, MetricFamily


class PlaybookMetrics:
    """Counts the playbooks that ended in runs of this process."""

    types = ("playbook_ended",)

    def __init__(self) -> None:
        self._ended = CounterFamily(
            "podium_playbooks_ended_total",
            "Ended playbook runs, by whether their criteria were met.",
            ["met"],
        )

    def families(self) -> Sequence[MetricFamily]:
        return [self._ended]

    def take(self, event: Event, run: HostedRun) -> None:
        if isinstance(event.body, PlaybookEnded):
            self._ended.add("yes" if event.body.met else "no")
