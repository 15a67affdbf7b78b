"""The composition root: builds the objects of the application from the settings, each when it is first used.

Packages are imported where they are used, not at the top: `podium approve` must not wait for the
tools, nor `podium policy check` for the database.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from podium.app.confining_launcher import ConfiningLauncher
from podium.app.flow_registry import LazyFlow, register_flows
from podium.app.local_sockets import local_socket
from podium.app.secrets import resolved, secret_finder, secret_in
from podium.app.state_lock import StateLock
from podium.config.folders import is_on_server
from podium.core.errors import NotPossibleNow, RecordLost
from podium.platform.system_clock import SystemClock, SystemIds
from podium.render.text import counted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from podium.agents.budget_tracker import BudgetTracker
    from podium.agents.bus import Bus
    from podium.agents.deps import AgentMaker
    from podium.app.checks import CheckRunner, ProjectChecks
    from podium.app.flow_registry import FlowBuilder
    from podium.app.receipts import Verifier
    from podium.config.configuration import Configuration
    from podium.core.workspaces import WorkspaceSpec
    from podium.git.git_command import Git
    from podium.policy import RuleGate
    from podium.ports import (
        Clock,
        ConfinementProvider,
        Engine,
        Forge,
        Gate,
        HookServers,
        Ids,
        Launcher,
        Store,
        ToolDoor,
        Transcripts,
        Workspaces,
    )
    from podium.sandbox import MechanismTrial, ProcessLauncher
    from podium.store import Redactor, SqlStore, StoreJournal
    from podium.store.postgres_store import PostgresStore
    from podium.telemetry.trace_export import TraceExport
    from podium.tools import LocalToolbox, Registry


FORGE_TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")
_BEGIN_ANEW = (
    "restore the file from a backup and run `podium receipts verify`; or start an empty record with "
    "`podium db begin-anew`, which archives the old chain heads"
)
_ACCEPT = (
    "restore the newer file and run `podium receipts verify`; or continue with this one with "
    "`podium db begin-anew`, which archives the old chain heads"
)
_HEADS_LOOKED_AT = 200
"""Chains that were sealed last: a record that was rolled back lacks the end of these."""


def print_notice(text: str) -> None:
    """Print a line on stderr, beside the output for people or programs."""
    print(f"podium: {text}", file=sys.stderr, flush=True)  # noqa: T201 — for those without a screen


class RecordLoss(NamedTuple):
    """Loss of receipts that were sealed, and the remedy."""

    problem: str
    remedy: str
    rolled_back: bool = False
    """It is an older state of the record; else nothing of that is left."""


class ArchivedRecord(NamedTuple):
    """Paths of the rest of a lost record; None: there was none."""

    heads: Path | None
    database: Path | None
    rolled_back: bool
    """The record itself stays: it is an older state."""


class Podium:
    """The objects of the application for one configuration. Close it with `close`."""

    def __init__(
        self,
        configuration: Configuration,
        environ: Mapping[str, str],
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
        flows: Mapping[str, FlowBuilder] | None = None,
        notify: Callable[[str], None] = print_notice,
        labels: tuple[str, ...] = (),
        made_agents: Mapping[str, AgentMaker] | None = None,
    ) -> None:
        """`notify` takes messages that a person should see although nobody asked; `labels` is what this process
        offers to queues; `made_agents` are agents of a program's own, beside those of podium.yaml."""
        self.made_agents = dict(made_agents or {})
        self.labels = labels
        self.notify = notify
        self.configuration = configuration
        self.settings = configuration.settings
        self.folders = configuration.folders
        self.state_lock = StateLock(self.folders.state)
        self.clock: Clock = clock or SystemClock()
        self.ids: Ids = ids or SystemIds()
        self.environ = environ
        self._flows = flows
        self._opening = asyncio.Lock()
        self._preparing = asyncio.Lock()
        self._store: SqlStore | PostgresStore | None = None
        self._engine: Engine | None = None
        self._hosting = False
        self._lazy_flows: list[LazyFlow] = []
        self._traces: TraceExport | None = None
        self._closing: list[Callable[[], Awaitable[None]]] = []

    @property
    def database(self) -> Path:
        """The file that holds the project's record. It need not exist."""
        from podium.store import DATABASE_NAME

        return self.folders.state / DATABASE_NAME

    @property
    def database_url(self) -> str:
        """The PostgreSQL that holds the record instead; empty for the file."""
        return self.environ.get("PODIUM_DATABASE_URL", "")

    @property
    def has_record(self) -> bool:
        """True when something may have been recorded, even if it is lost. Creates no file."""
        return bool(self.database_url) or self.database.exists() or bool(self.record_loss)

    @property
    def record_loss(self) -> RecordLoss | None:
        """Problem of a record that is gone or rolled back although receipts were sealed in it. None: there is none."""
        if self.database_url or is_on_server(self.folders):
            return None
        from podium.config.project_identity import is_copy
        from podium.store import Anchors, chain_ends, is_empty

        anchors = Anchors(self.key_dir)
        # Before the file is read, which another process may write meanwhile: heads follow receipts.
        heads, runs = anchors.newest(_HEADS_LOOKED_AT), anchors.runs()
        ends = chain_ends(self.database, heads) or chain_ends(self.database, runs)
        if runs and not ends:
            what = "it has none of" if self.database.exists() else "it is missing, and so are"
            problem = (
                f"the record is lost: {what} the receipts sealed for {counted(len(runs), 'run')}"
            )
            return RecordLoss(problem, _BEGIN_ANEW)
        behind = [run for run, number in heads.items() if ends.get(run, 0) < number]
        # The original may have gone on since; a copy takes over only heads whose receipts it holds.
        if behind and not is_copy(self.folders):
            problem = f"the record was rolled back: it ends before receipts sealed for {counted(len(behind), 'run')}"
            return RecordLoss(problem, _ACCEPT, rolled_back=True)
        if anchors.are_begun_anew or not (self.key_dir / "receipt.key").exists():
            return None
        if is_empty(self.database):
            what = "empty" if self.database.exists() else "missing"
            problem = f"the record is lost: it is {what}, but the key of its receipts exists"
            return RecordLoss(problem, _BEGIN_ANEW)
        return None

    @property
    def key_dir(self) -> Path:
        """The key and the heads of the receipts."""
        return self.folders.key_dir

    @property
    def receipt_key(self) -> Path:
        """The key that receipts are sealed with. The first receipt makes it, unless it was named."""
        return self.named_receipt_key or self.key_dir / "receipt.key"

    @property
    def named_receipt_key(self) -> Path | None:
        """The key that all machines on one database share, where a person has put it."""
        path = self.environ.get("PODIUM_RECEIPT_KEY")
        return Path(path) if path else None

    @property
    def has_heads(self) -> bool:
        """True when the end of some chain of receipts was ever anchored."""
        folder = self.key_dir / "heads"
        return folder.is_dir() and any(folder.iterdir())

    @cached_property
    def redactor(self) -> Redactor:
        from podium.store import Redactor

        return Redactor.from_environment(
            self.environ,
            self.settings.redact,
            declared=self.settings.secrets or (),
            harmless=self.settings.not_secret or (),
        )

    async def store(self, *, although_lost: bool = False) -> SqlStore | PostgresStore:
        """The record, opened or made. Raises a `StoreUnusable` that says what to do.

        A lost record is one of these, unless whoever asks looks into just that.
        """
        async with self._opening:
            if self._store is None:
                if not although_lost and (loss := self.record_loss):
                    raise RecordLost(str(self.database), loss.problem, loss.remedy)
                self._store = await self._open_store()
        return self._store

    async def begin_anew(self) -> ArchivedRecord:
        """Start with an empty record where the old one is lost. Gives where what was there is kept.

        One that was rolled back stays, with the heads of those receipts that it holds. Raises `NotPossibleNow` where
        the record is not lost.
        """
        from podium.store import Anchors, copy_heads
        from podium.store.sqlite import archive

        if (loss := self.record_loss) is None:
            raise NotPossibleNow("the record is not lost; list its runs with `podium runs`")
        now, database = self.clock.now(), None
        if not loss.rolled_back:
            database = await asyncio.to_thread(archive, self.database, now)
        heads = await asyncio.to_thread(Anchors(self.key_dir).archive, now)
        if loss.rolled_back and heads is not None:
            old = Anchors(self.key_dir, heads.name)
            await asyncio.to_thread(copy_heads, old, Anchors(self.key_dir), self.database)
        await self.store(although_lost=True)
        return ArchivedRecord(heads, database, loss.rolled_back)

    async def _open_store(self) -> SqlStore | PostgresStore:
        if self.database_url:
            from podium.app.postgres import open_postgres_store

            return await open_postgres_store(
                self.database_url,
                folders=self.folders,
                lock=self.state_lock,
                clock=self.clock,
                ids=self.ids,
                redact=lambda text: self.redactor.json_text(text),
                receipt_key=self.named_receipt_key,
            )
        from podium.config.project_identity import settle_identity
        from podium.store import SqlStore

        state = self.folders.make_state()
        await asyncio.to_thread(self.state_lock.hold)
        await asyncio.to_thread(settle_identity, self.folders, self.notify)
        return await SqlStore.open(
            state,
            clock=self.clock,
            ids=self.ids,
            redact=lambda text: self.redactor.json_text(text),
            key_dir=self.key_dir,
            receipt_key=self.named_receipt_key,
        )

    @property
    def offers(self) -> tuple[str, ...]:
        """Names of what this process has and another one of the project may lack. Runs started here need them."""
        names = sorted({*(self.settings.secrets or ()), *FORGE_TOKENS})
        variables = [f"variable:{name}" for name in names if self.environ.get(name)]
        return (*variables, *(f"agent:{name}" for name in sorted(self.made_agents)))

    async def journal(self) -> StoreJournal:
        from podium.store import StoreJournal

        return StoreJournal(await self.store())

    @cached_property
    def transcripts(self) -> Transcripts:
        """Transcripts of turns, kept beside each run's trace."""
        from podium.store import FileTranscripts

        return FileTranscripts(self.folders.state / "runs", self.redactor.text)

    async def verifier(self) -> Verifier:
        """Checks chains of receipts against the key and the heads."""
        from podium.store import verify

        store = await self.store()
        alone = not self.database_url
        return lambda chains: verify(chains, store.sealer, store.anchors, alone=alone)

    async def engine(self) -> Engine:
        """The engine, for questions and wishes. It hosts nothing until `hosting_engine` is asked for."""
        store = await self.store()
        if self._engine is None:  # nothing is awaited between this look and the assignment
            self._engine = self._build_engine(store)
        return self._engine

    def _build_engine(self, store: Store) -> Engine:
        if self.database_url:
            from podium.app.postgres import distributed_engine

            return distributed_engine(
                store,
                self.database_url,
                clock=self.clock,
                ids=self.ids,
                labels=self.labels,
                offers=self.offers,
            )
        from podium import __version__
        from podium.engine import EngineSettings, FolderPresence, LocalEngine

        return LocalEngine(
            store,
            clock=self.clock,
            ids=self.ids,
            presence=FolderPresence(self.folders.state / "workers"),
            settings=EngineSettings(labels=self.labels, podium=__version__, offers=self.offers),
        )

    async def hosting_engine(self) -> Engine:
        """The engine with every flow registered, so that it can host runs.

        Raises a `StoreUnusable` where the database belongs to another project or key.
        """
        engine = await self.engine()
        async with self._preparing:
            if not self._hosting:
                await self._prepare_hosting(engine)
                self._hosting = True
        return engine

    async def _prepare_hosting(self, engine: Engine) -> None:
        if self.database_url:
            from podium.app.postgres import admit

            await admit(
                await self.store(),
                self.database_url,
                git=self.repository_git,
                project=self.folders.project,
                receipt_key=self.named_receipt_key,
            )
        from podium.app.workspaces import tidy_grounds, tidy_homes
        from podium.telemetry.trace_export import TraceExport

        await self.end_orphans()
        store = await self.store()
        await tidy_homes(self.folders.homes, store, self.clock)
        await tidy_grounds(self.folders.grounds, self.repository_git, store, self.clock)
        if self.configuration.has_policy:
            _ = self.gate  # a policy that cannot be used is refused before a run is taken
        self._lazy_flows = await register_flows(self, engine, self._flows)
        # Before the first run is taken: a trace begins with that.
        self._traces = await TraceExport.open(
            await self.store(), engine.worker_id, self.environ, self.redactor.text
        )

    async def load_flows(self) -> None:
        """Load every flow that can be hosted, for a process that lives long.

        Its code is then of one version whatever is installed later, and nothing is imported while a transaction is open.
        Raises `NotPossibleNow` where a flow cannot be loaded.
        """
        for flow in self._lazy_flows:
            await asyncio.to_thread(flow.load)

    async def end_orphans(self) -> None:
        """End what killed Podiums started, before anything is cleared away after them."""
        from podium.sandbox import end_orphans

        await asyncio.to_thread(end_orphans)

    @cached_property
    def launcher(self) -> Launcher:
        """Starts every child process, and what agents wished for the way the settings confine it."""
        from podium.app.confining_launcher import ProjectVenv
        from podium.sandbox import visible_paths

        venv = ProjectVenv(self.folders.project, self.environ, self.repository_git)
        return ConfiningLauncher(
            self._own_launcher,
            self.configuration.sandbox,
            self.environ,
            needed_folders=lambda programs, untrusted, search_path: visible_paths(
                programs,
                search_path,
                home=self.environ.get("HOME") or str(Path.home()),
                project=str(self.folders.project),
                closed=(str(self.folders.user_state), str(self.folders.user_config)),
                untrusted=untrusted,
            ),
            venv=venv.programs,
        )

    async def confining_ways(self) -> tuple[MechanismTrial, ...]:
        """Every way in which the kernel of this machine could confine, tried just now."""
        return await self._own_launcher.survey()

    @cached_property
    def _own_launcher(self) -> ProcessLauncher:
        """Starts what Podium itself needs, confined as each spawn says and no more."""
        from podium.sandbox import LauncherSettings, ProcessLauncher, serve_network

        allowed = (*LauncherSettings().allowed_names, *self.settings.environment.names)
        denied = self.settings.environment.deny
        names = tuple(name for name in allowed if name not in denied)
        return ProcessLauncher(
            LauncherSettings(allowed_names=names),
            resolve_secret=self.resolve_secret,
            parent_env=self.environ,
            serve=serve_network(self.environ),
            memory=self.folders.user_state / "sandbox.json",
        )

    @cached_property
    def confinement_provider(self) -> ConfinementProvider:
        """Confinement of the folders that agents work in."""
        from podium.app.confinement import ProjectConfinement
        from podium.policy import exec_rules

        return ProjectConfinement(
            self.workspaces,
            self.configuration.sandbox,
            exec_rules,
            self.folders.user_state / "empty",
            self.notify,
        )

    def workspace_spec(self, task: str, **options: str) -> WorkspaceSpec:
        """A workspace for this task as the settings want it: `base`, `branch` and `run_id` may be named."""
        from podium.app.workspaces import workspace_spec

        return workspace_spec(self.configuration, self.gate.closed_paths, task, **options)

    @cached_property
    def workspaces(self) -> Workspaces:
        """All workspaces of the user, also those of other projects."""
        from podium.git import GitWorkspaces

        return GitWorkspaces(
            self._own_launcher,
            self.folders.user_state,
            self.clock,
            self.ids,
            secrets_in=secret_finder(self.redactor),
            inside=self.launcher,
            confined=self.configuration.sandbox.kind == "kernel",
            report=lambda text: self.notify(self.redactor.text(text)),
            guarded=self._guarded_paths,
        )

    def _guarded_paths(self, repository: str) -> list[str]:
        from podium.app.workspaces import guarded_paths

        return guarded_paths(self.configuration, repository)

    @cached_property
    def check_runner(self) -> CheckRunner:
        """Runs the project's checks, confined."""
        from podium.app.checks import CheckRunner

        return CheckRunner(self.confinement_provider, self.launcher, self.redactor.text)

    @cached_property
    def project_checks(self) -> ProjectChecks:
        """Checks of the project outside of a task."""
        from podium.app.checks import ProjectChecks

        return ProjectChecks(
            self.configuration,
            self.workspaces,
            self.workspace_spec,
            self.repository_git,
            self.check_runner,
        )

    @cached_property
    def repository_git(self) -> Git:
        """git for looking at the user's own checkout."""
        from podium.git.git_command import Git

        return Git(self._own_launcher)

    def forge(self, *, push: bool = True) -> Forge:
        """The project's remote, or what stands in for it."""
        from podium.git.forge import ForgeSettings, RepositoryForge

        return RepositoryForge(
            self._own_launcher,
            self.clock,
            self.folders.state / "pull_requests",
            ForgeSettings(push=push, **self.settings.forge.model_dump()),
            token=next((token for name in FORGE_TOKENS if (token := self.environ.get(name))), ""),
        )

    @cached_property
    def gate(self) -> RuleGate:
        """The gate under every layer of the policy."""
        from podium.config.policy_layers import build_gate

        return build_gate(self.configuration)

    @cached_property
    def registry(self) -> Registry:
        from podium.tools import Registry, builtin_tools, own_tools

        return Registry([*builtin_tools(), *own_tools()])

    async def tool_door(
        self,
        root: Path | None = None,
        *,
        attended: bool = False,
        registry: Registry | None = None,
        gate: Gate | None = None,
        mode: str = "",
        confinement_provider: ConfinementProvider | None = None,
        store: Store | None = None,
    ) -> ToolDoor:
        """The door that calls in a workspace pass. Without `root` that is the project itself.

        `gate`, `mode` and `enclosures` are for a flow that has its own; with a `store` of its own it is
        not asked who owns the run.
        """
        from podium.tools import DoorSettings, GatedDoor

        return GatedDoor(
            store or await self.store(),
            gate or self.gate,
            (registry or self.registry).spec,
            clock=self.clock,
            ids=self.ids,
            settings=DoorSettings(
                root=str((root or self.folders.project).resolve()),
                mode=mode or self.settings.mode,
                attended=attended,
                budgets=self.settings.budgets.budgets(),
                owner="" if store else (await self.engine()).worker_id,
            ),
            redact=self.redactor.text,
            held=(confinement_provider or self.confinement_provider).held,
        )

    def toolbox_behind(
        self,
        door: ToolDoor,
        root: Path | None = None,
        registry: Registry | None = None,
        *,
        gate: Gate | None = None,
        confinement_provider: ConfinementProvider | None = None,
        launcher: Launcher | None = None,
    ) -> LocalToolbox:
        """The tools of a workspace, performed through `door`."""
        from podium.policy import split_command
        from podium.tools import LocalToolbox, ToolboxSettings

        return LocalToolbox(
            registry or self.registry,
            door,
            launcher or self.launcher,
            confinements=confinement_provider or self.confinement_provider,
            clock=self.clock,
            settings=ToolboxSettings(
                root=str((root or self.folders.project).resolve()),
                undo_folder=str(self.folders.state / "kept"),
            ),
            split_command=split_command,
            looks_secret=self.looks_secret,
            resolve_secret=self.resolve_secret,
            redact=self.redactor.text,
            longest_secret=self.redactor.longest,
            passed_over=(gate or self.gate).passed_over,
        )

    async def toolbox(self, root: Path | None = None, *, attended: bool = False) -> LocalToolbox:
        """The tools of a workspace behind their own door."""
        return self.toolbox_behind(await self.tool_door(root, attended=attended), root)

    async def hook_doors(
        self,
        folder: Path | None = None,
        *,
        gate: Gate | None = None,
        confinement_provider: ConfinementProvider | None = None,
    ) -> HookServers:
        """Opens the door that an agent's processes use for a turn, in the turn's workspace.

        Doors listen in `folder`, for programs that live longer than a turn and are shown it from the start.
        `gate` and `enclosures` are for a flow that has its own.
        """
        from podium.sandbox import HookServer, HookServerSettings

        door = await self.tool_door(gate=gate, confinement_provider=confinement_provider)
        toolbox = self.toolbox_behind(door, confinement_provider=confinement_provider)
        journal = await self.journal()
        settings = HookServerSettings(folder=str(folder) if folder else None)
        return HookServer(door, toolbox, journal, settings, redact=self.redactor.text)

    @cached_property
    def bus(self) -> Bus:
        """Bus that other programs join as agents. Opened when one of them is first asked."""
        from podium.agents.bus import Bus, BusSettings

        bus = Bus(BusSettings(socket=local_socket(self.folders.project, self.environ, "bus")))
        self.close_with(bus.close)
        return bus

    async def budget_tracker(self) -> BudgetTracker:
        """The budgets that the turns of runs are held to."""
        from podium.agents.budget_tracker import BudgetTracker

        budgets = (*self.gate.budgets, *self.settings.budgets.budgets())
        return BudgetTracker(await self.store(), self.clock, budgets)

    def resolve_secret(self, name: str) -> str:
        """The value behind `secret://NAME`. Raises `UserMustAct` that says where to declare or set it."""
        return resolved(name, self.settings.secrets or (), self.environ, self.folders.user_file)

    def looks_secret(self, text: str) -> str | None:
        """The name of a secret that the text holds, or None."""
        return secret_in(text, self.redactor.text, self.environ)

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems with the files kept beside the record. Complete once this is closed."""
        problems = self._store.problems if self._store is not None else ()
        return (*problems, *(self._traces.problems if self._traces is not None else ()))

    def close_with(self, closing: Callable[[], Awaitable[None]]) -> None:
        """Have something closed with this Podium, when no run is hosted any more."""
        self._closing.append(closing)

    async def close(self) -> None:
        """Let go of hosted runs at their checkpoints, then of the record."""
        try:
            if self._engine is not None:
                await self._engine.close()
            for closing in self._closing:
                await closing()
            if self._traces is not None:
                await self._traces.close()
        finally:
            if self._store is not None:
                await self._store.close()
            self.state_lock.release()


@asynccontextmanager
async def open_podium(
    configuration: Configuration,
    environ: Mapping[str, str],
    *,
    flows: Mapping[str, FlowBuilder] | None = None,
    made_agents: Mapping[str, AgentMaker] | None = None,
) -> AsyncIterator[Podium]:
    """A Podium that is closed at the end, also when interrupted."""
    podium = Podium(configuration, environ, flows=flows, made_agents=made_agents)
    try:
        yield podium
    finally:
        await podium.close()
