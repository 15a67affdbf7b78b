"""What the loop has earned and lost since the last tick."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from podium.bridge import last_tick
from podium.cli.rooting import root_words
from podium.domain.gating import Tier
from podium.domain.trust import Standing, standings
from podium.wiring import Podium
from podium.wiring.sensing import known_standings, sense_options, trust_of

NOTHING = Standing(target="", zone="")


class TrustNews:
    """Made before a tick, asked after it; asked again, it tells what happened since."""

    def __init__(self, podium: Podium) -> None:
        self._podium = podium
        self._needed = sense_options(podium).promote_after
        tick = last_tick(podium.folders.project)
        entries = trust_of(podium).entries()
        before = standings(each for each in entries if tick is not None and each.at <= tick.at)
        self._known = {(each.target, each.zone): each for each in before}

    def lines(self) -> list[str]:
        """A sentence for each demotion, and for each promotion that has been earned."""
        now = known_standings(self._podium)
        lines = [line for each in now for line in self._news_of(each)]
        self._known = {(each.target, each.zone): each for each in now}
        return lines

    def _news_of(self, standing: Standing) -> Iterator[str]:
        before = self._known.get((standing.target, standing.zone), NOTHING)
        place = f"{standing.target} in {standing.zone}"
        if before.granted is not None and standing.granted is None:
            yield f"{place} lost its autonomy, its orders are asked about again: {standing.why}"
        if standing.proposes(self._needed) and not before.proposes(self._needed):
            tier = max(standing.highest_agreed, Tier.T1)
            words = f"{shlex.quote(standing.target)} --zone {shlex.quote(standing.zone)}"
            project = root_words(self._podium.folders.project)
            yield f"{place} has earned autonomy up to {tier}: podium sense trust promote {words}{project}"
