"""The toolbox: registered tools, performed through the door."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from podium.core.decisions import (
    Call,
    CallOutcome,
    PathUse,
    Permit,
    Refusal,
    Tier,
    ToolSpec,
    canonical_json,
)
from podium.core.errors import BadArguments, OutcomeUnknown, Passing, PodiumError, RunMustStop
from podium.core.model import FrozenModel, Json
from podium.platform.completion import run_to_completion
from podium.platform.safe_open import UnusableFile
from podium.ports import Checkpoint, Clock, ConfinementProvider, Launcher, ToolDoor
from podium.tools.normalization import CommandSplitter, LooksSecret, Normalizer
from podium.tools.output_text import CANCELLED, DEFAULT_RESULT_BYTES, OutputCleaner, clean_outcome
from podium.tools.registry import Registry, Tool
from podium.tools.scope import ToolScope
from podium.tools.search_scope import SearchTooLarge, reached


class ToolboxSettings(FrozenModel):
    """Folders and limits of the toolbox."""

    root: str
    """The workspace of calls that name none. Symlinks in it are resolved when the toolbox is made."""
    result_bytes: int = DEFAULT_RESULT_BYTES
    """Limit on a result that the agent sees."""
    argument_bytes: int = 1_000_000
    """Limit on the arguments of one call, as JSON."""
    undo_folder: str | None = None
    """Folder for earlier contents of overwritten files. None: such a write cannot be undone."""


class LocalToolbox:
    """Performs tools in this process and its children."""

    def __init__(
        self,
        registry: Registry,
        door: ToolDoor,
        launcher: Launcher,
        *,
        confinements: ConfinementProvider,
        clock: Clock,
        settings: ToolboxSettings,
        split_command: CommandSplitter,
        looks_secret: LooksSecret,
        resolve_secret: Callable[[str], str],
        redact: Callable[[str], str],
        passed_over: Callable[[str, str], bool],
        longest_secret: int = 0,
    ) -> None:
        self._registry = registry
        self._door = door
        self._launcher = launcher
        self._confinements = confinements
        self._clock = clock
        self._settings = settings
        self._root = Path(settings.root).resolve()
        self._resolve_secret = resolve_secret
        self._redact = redact
        self._cleaner = OutputCleaner(redact)
        self._longest_secret = longest_secret
        self._passed_over = passed_over
        self._normaliser = Normalizer(
            registry,
            split_command=split_command,
            looks_secret=looks_secret,
            argument_bytes=settings.argument_bytes,
        )

    def specs(self) -> Sequence[ToolSpec]:
        return self._registry.specs()

    def normalise(
        self,
        tool: str,
        arguments: dict[str, Json],
        *,
        run_id: str,
        step_key: str,
        index: int,
        role: str = "",
        agent: str = "",
        provenance: tuple[str, ...] = (),
        observed: bool = False,
        root: str | None = None,
    ) -> Call:
        """See the port. Raises `UnknownTool` or `BadArguments`, whose messages are for the agent."""
        folder = self._root if root is None else Path(root).resolve()
        normal = self._normaliser.normal(tool, arguments, folder)
        searched = self._reached(tool, arguments, normal.paths, str(folder)) if observed else ()
        return Call(
            run_id=run_id,
            step_key=step_key,
            index=index,
            tool=tool,
            arguments=normal.arguments,
            paths=(*normal.paths, *searched),
            commands=normal.commands,
            undecidable=normal.undecidable,
            files=normal.files,
            role=role,
            agent=agent,
            provenance=provenance,
            observed=observed,
            root=str(folder),
        )

    def _reached(
        self, tool: str, arguments: dict[str, Json], paths: Sequence[PathUse], root: str
    ) -> tuple[PathUse, ...]:
        """Return protected files that an agent's own search reads. Outside the workspace a person judges."""
        uses: list[PathUse] = []
        globs = {path.name: path.glob_argument for path in self._registry.tool(tool).spec.paths}
        for use in paths:
            name = globs.get(use.argument)
            if name is None or not Path(use.real).is_relative_to(root):
                continue
            try:
                files = reached(
                    root, use.real, arguments.get(name), lambda path: self._passed_over(path, root)
                )
                for path in files:
                    relative = os.path.relpath(path, root)
                    uses.append(use.model_copy(update={"given": relative, "real": path}))
            except SearchTooLarge as error:
                raise BadArguments(tool, [f"{use.given!r} cannot be searched: {error}"]) from None
        return tuple(uses)

    async def perform(
        self, call: Call, checkpoint: Checkpoint | None = None
    ) -> CallOutcome | Refusal:
        """Request, act, settle. What the handler raises becomes a failed outcome.

        Cancelled, or told by the handler that the run must stop, the call is settled as failed
        first, and the error goes on.
        """
        permit = await self._door.request(call)
        if isinstance(permit, Refusal):
            return permit
        if permit.settled is not None:
            return await self._settle(permit, permit.settled, checkpoint)
        try:
            outcome = await self._act(self._registry.tool(call.tool), call, permit.said)
        except asyncio.CancelledError:
            # The call has to be settled although the task is being cancelled, perhaps again.
            closing = self._settle(permit, CallOutcome(ok=False, error=CANCELLED), None)
            # Should that fail, the call stays requested and is in doubt on resume.
            with suppress(Exception):
                await run_to_completion(closing)
            raise
        except (RunMustStop, Passing) as error:
            await self._settle(permit, CallOutcome(ok=False, error=str(error)), None)
            raise
        except OutcomeUnknown as error:
            if self._registry.tool(call.tool).spec.tier > Tier.T0:
                # Raises `CallInDoubt`, unless doing it again under its key would be the same.
                await self._door.look_back(call.run_id, call.step_key)
            outcome = CallOutcome(ok=False, error=str(error), unknown=True)
        except Exception as error:
            outcome = CallOutcome(ok=False, error=_describe_error(call.tool, error))
        return await self._settle(permit, outcome, checkpoint)

    async def _act(self, tool: Tool, call: Call, comment: str = "") -> CallOutcome:
        begun = self._clock.monotonic()
        root = call.root or str(self._root)
        limit_seconds = tool.spec.timeout_seconds
        scope = ToolScope(
            call=call,
            root=Path(root),
            launcher=self._launcher,
            confinements=self._confinements,
            clock=self._clock,
            timeout_seconds=limit_seconds,
            resolve_secret=self._resolve_secret,
            passed_over=lambda path: self._passed_over(path, root),
            redact=self._redact,
            longest_secret=self._longest_secret,
            undo_folder=Path(self._settings.undo_folder) if self._settings.undo_folder else None,
            approval_comment=comment,
        )
        deadline = asyncio.timeout(limit_seconds)
        try:
            async with deadline:
                result = await tool.handler(dict(call.arguments), scope)
        except TimeoutError:
            if not deadline.expired():
                raise
            result = CallOutcome(ok=False, error=f"timed out after {limit_seconds:g} seconds")
        seconds = self._clock.monotonic() - begun
        value = result.result if isinstance(result, CallOutcome) else result
        canonical_json(value)  # what is not plain JSON could be neither kept nor sealed
        if isinstance(result, CallOutcome):
            return result.model_copy(update={"duration_seconds": seconds})
        return CallOutcome(ok=True, result=result, duration_seconds=seconds)

    async def _settle(
        self, permit: Permit, outcome: CallOutcome, checkpoint: Checkpoint | None
    ) -> CallOutcome:
        """The second stage that every result passes: what is kept and what the agent sees are the same."""
        most_bytes = self._settings.result_bytes
        cleaned = clean_outcome(outcome, self._cleaner, most_bytes)
        if permit.settled is None and not self._registry.tool(permit.call.tool).is_own_text:
            # Late: its patterns take longer to compile than most calls are judged.
            from podium.tools.instruction_marks import marked

            cleaned = marked(cleaned, most_bytes)
        if permit.settled is None or checkpoint is not None:
            await self._door.settle(permit, cleaned, checkpoint)
        return cleaned


def _describe_error(tool: str, error: Exception) -> str:
    """Describe an error without a traceback."""
    if isinstance(error, PodiumError | UnusableFile):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        location = f" ({error.filename!r})" if error.filename else ""
        return f"{tool!r} broke: {error.strerror}{location}"
    return f"{tool!r} broke: {type(error).__name__}: {error}"
