"""Registry of flows: every flow is known by name and version, and loaded by the first run of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any, Protocol

from podium.config.configuration import Configuration
from podium.core.errors import NotPossibleNow
from podium.core.job import FlowSpec, ImportPath, all_jobs, load
from podium.ports import Engine, Flow, FlowBody, FlowContext

FlowBuilder = Callable[[Any], Awaitable[Flow]]
"""Makes a flow of the application, a `Podium`."""


class FlowHost(Protocol):
    """The application that flows are built of, as far as it matters here."""

    @property
    def configuration(self) -> Configuration: ...


KERNEL_FLOWS: dict[str, FlowSpec] = {
    "call": FlowSpec(
        "podium.app.kernel_flows:build_call",
        "podium.app.kernel_flows:CallJob",
        "podium.app.kernel_flows:calling",
    ),
    "delivery": FlowSpec(
        "podium.app.kernel_flows:build_delivery",
        "podium.app.kernel_flows:DeliveryJob",
        "podium.app.kernel_flows:delivery",
    ),
}


class LazyFlow:
    """Flow whose input model and body are loaded by the first run of it.

    An error of `build` fails the run that needed the body; the next run builds again.
    """

    def __init__(self, name: str, spec: FlowSpec, app: FlowHost) -> None:
        self.name = name
        self.version = spec.version
        self._spec = spec
        self._app = app
        self._built: FlowBody | None = None
        self._building = asyncio.Lock()

    @cached_property
    def input_type(self) -> Any:
        return self._load(self._spec.input) if self._spec.input else None

    @cached_property
    def code(self) -> Any:
        return self._load(self._spec.code)

    def check(self) -> None:
        """Check the options of the flow, where settings have any. Raises `ConfigInvalid`."""
        layers = self._app.configuration.layers
        if self._spec.check and any(self.name in layer.settings.flows for layer in layers):
            self._load(self._spec.check)(self._app.configuration)

    def load(self) -> None:
        """Load everything that a run needs. Raises `NotPossibleNow` where it cannot be loaded."""
        _ = self.input_type, self.code, self._load(self._spec.build)

    async def body(self, ctx: FlowContext, value: Any) -> Any:
        async with self._building:
            if self._built is None:
                self._built = await self._load(self._spec.build)(self._app)
        return await self._built(ctx, value)

    def _load(self, path: ImportPath) -> Any:
        try:
            return load(path)
        except (ImportError, AttributeError) as error:
            raise NotPossibleNow(
                f"flow {self.name!r} cannot be loaded from {path!r}: {error}; install its package again"
            ) from error


def flow_builders() -> dict[str, FlowBuilder]:
    """Builder of every flow, of the kernel's and of all jobs, by name."""
    specs = dict(KERNEL_FLOWS)
    for job in all_jobs():
        specs |= job.flows
    return {name: _builder(name, specs[name]) for name in sorted(specs)}


def _builder(name: str, spec: FlowSpec) -> FlowBuilder:
    async def build(app: FlowHost) -> Flow:
        return LazyFlow(name, spec, app)

    return build


async def register_flows(
    app: FlowHost, engine: Engine, builders: Mapping[str, FlowBuilder] | None = None
) -> list[LazyFlow]:
    """Register every flow with the engine, and return those that are not loaded yet.

    Raises `ConfigInvalid`, before any is registered, where the options of one are wrong.
    """
    builders = flow_builders() if builders is None else builders
    flows = [await build(app) for build in builders.values()]
    lazy = [flow for flow in flows if isinstance(flow, LazyFlow)]
    for flow in lazy:
        flow.check()
    for registered in flows:
        engine.register(registered)
    return lazy
