"""A launcher that confines every process at least as the settings say."""

from __future__ import annotations

from podium.domain.launching import Confinement, Ended, Spawn
from podium.ports import Launcher, Process
from podium.wiring.settings import SandboxSettings


class ConfiningLauncher:
    """Tightens what is started, and leaves the starting to another launcher.

    That one refuses what it cannot enforce, so a confinement that is set is never left out.
    """

    def __init__(self, inner: Launcher, least: SandboxSettings) -> None:
        self._inner = inner
        self._least = least

    async def start(self, spawn: Spawn) -> Process:
        return await self._inner.start(self._tightened(spawn))

    async def run(self, spawn: Spawn) -> Ended:
        return await self._inner.run(self._tightened(spawn))

    def _tightened(self, spawn: Spawn) -> Spawn:
        asked = spawn.confinement
        wished = SandboxSettings(kind=asked.kind, network=asked.network, hosts=asked.hosts)
        both = wished.tightened_by(self._least)
        confinement = Confinement(
            kind=both.kind,
            network=both.network,
            hosts=both.hosts,
            mounts=asked.mounts,
            forwarded_ports=asked.forwarded_ports,
        )
        return spawn.model_copy(update={"confinement": confinement})
