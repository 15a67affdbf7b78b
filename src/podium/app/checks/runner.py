"""Runner of checks, each confined to the workspace that it runs in."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping

from podium.app.checks.check import Check, CheckResult, ran_no_tests
from podium.config.configuration import Configuration
from podium.core.errors import NotPossibleNow
from podium.core.processes import ProcessLimits, ProcessSpec
from podium.ports import ConfinementProvider, Launcher, Workspace

CHECK_SECONDS = 1200.0
"""Time that a check may take where no setting says otherwise."""
_OUTPUT_BYTES = 2_000_000
_TAIL_CHARACTERS = 8_000

RunCheck = Callable[[Workspace, Check, float], Awaitable[CheckResult]]
"""Runs a check confined to the workspace, within so many seconds."""


def named_checks(configuration: Configuration) -> tuple[Check, ...] | None:
    """The checks that podium.yaml names. None: it names none, and they are looked for.

    Raises `NotPossibleNow` for those of a project that nobody has trusted, where nothing would confine them.
    """
    settings = configuration.settings.checks
    if settings is None:
        return None
    if configuration.sandbox.kind == "none" and not configuration.project_is_trusted():
        raise NotPossibleNow(
            "podium.yaml names checks, which would run unconfined here; read it, then say `podium trust`"
        )
    return tuple(
        Check(name=check, command=check)
        if isinstance(check, str)
        else Check(name=check.name, command=check.run)
        for check in settings
    )


class CheckRunner:
    """Runs checks. A workspace or a folder is all that one can change."""

    def __init__(
        self,
        confinement_provider: ConfinementProvider,
        launcher: Launcher,
        redact: Callable[[str], str],
    ) -> None:
        self._confinement_provider = confinement_provider
        self._launcher = launcher
        self._redact = redact

    async def run(self, workspace: Workspace, check: Check, seconds: float) -> CheckResult:
        """Run a check in a workspace, with its ports as variables."""
        record = workspace.record
        return await self.run_in(record.path, check, seconds, ports=record.ports)

    async def run_in(
        self, folder: str, check: Check, seconds: float, *, ports: Mapping[str, int] | None = None
    ) -> CheckResult:
        """Run a check in a folder. `ports` are variables for it."""
        confinement = await self._confinement_provider.confinement(folder)
        ended = await self._launcher.run(
            ProcessSpec(
                argv=("/bin/sh", "-c", f"exec 2>&1; {check.command}"),
                cwd=folder,
                env={name: str(port) for name, port in (ports or {}).items()},
                limits=ProcessLimits(seconds=seconds, output_bytes=_OUTPUT_BYTES),
                # A project's tests may use git as they like: what they reach is the workspace alone.
                confinement=confinement.model_copy(update={"execs": None}),
            )
        )
        text = self._redact(ended.stdout.decode(errors="replace"))
        return CheckResult(
            name=check.name,
            command=check.command,
            exit_code=None if ended.timed_out else ended.exit_code,
            seconds=round(ended.seconds, 3),
            output_sha256=hashlib.sha256(ended.stdout).hexdigest(),
            tail=text[-_TAIL_CHARACTERS:],
            timed_out=ended.timed_out,
            ran_no_tests=ran_no_tests(text),
        )
