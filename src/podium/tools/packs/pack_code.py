"""Imports a pack's own code: from its folder, from source, and only as it was when it was loaded."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from podium import core
from podium.core import errors
from podium.core.errors import PodiumError, ToolBroke
from podium.core.packs import Pack
from podium.platform.completion import in_thread
from podium.tools.packs.files import PackFiles
from podium.tools.packs.handlers import PythonHandler

NAMESPACE = "podium_packs"


class PackCode:
    """The code of one pack, as the package `podium_packs.<pack>`.

    Nothing is imported before it is asked for. Packs do not see each other's modules, whatever
    these are called.
    """

    def __init__(self, pack: Pack) -> None:
        self._files = PackFiles(Path(pack.folder), pack.digest)
        self._imported: set[str] = set()
        self.package = _FINDER.register(pack.name.replace("-", "_"), self._files)

    def function(self, handler: PythonHandler) -> Callable[..., Any]:
        """The async function. May take a while at first; raises `ToolBroke` with what went wrong."""
        # Asked for each time: another thread may just be at importing it.
        function = getattr(self._import(handler.module), handler.function, None)
        if not (inspect.iscoroutinefunction(function) and callable(function)):
            problem = f"{handler.module}:{handler.function} is not an async function"
            raise ToolBroke(f"the pack's code cannot be used: {problem}")
        return function

    async def ready(self, handler: PythonHandler) -> Callable[..., Any]:
        """The same, without holding up the event loop while it is imported."""
        if handler.module in self._imported:
            return self.function(handler)
        return await in_thread(self.function, handler)

    def _import(self, module: str) -> ModuleType:
        # Packs written for 0.2 and before import their errors from `podium.domain.errors`.
        sys.modules.setdefault("podium.domain", core)
        sys.modules.setdefault("podium.domain.errors", errors)
        try:
            imported = importlib.import_module(f"{self.package}.{module}")
            self._imported.add(module)
            return imported
        except PodiumError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ToolBroke(
                f"the pack's module {module!r} cannot be imported: {reason}; fix it, or install what it needs"
            ) from error


class _PackFinder(MetaPathFinder):
    """Finds `podium_packs` and what is beneath it; knows no other module."""

    def __init__(self) -> None:
        self._packs: dict[str, PackFiles] = {}
        self._manifests: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def register(self, name: str, files: PackFiles) -> str:
        """The package's name. Another pack of this name, or an older state of it, keeps its own."""
        with self._lock:
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)
            held = self._packs.setdefault(name, files)
            if held != files:
                digest = hashlib.sha256(f"{files.folder}\0{files.digest}".encode()).hexdigest()
                name = f"{name}__{digest[:12]}"
                self._packs[name] = files
        return f"{NAMESPACE}.{name}"

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        first, _, rest = fullname.partition(".")
        if first != NAMESPACE:
            return None
        pack, _, module = rest.partition(".")
        if not rest:
            return ModuleSpec(fullname, None, is_package=True)
        return self._module_spec(fullname, pack, module) if pack in self._packs else None

    def _module_spec(self, fullname: str, pack: str, module: str) -> ModuleSpec | None:
        files = self._packs[pack]
        manifest = self._manifests.get(pack) or self._manifests.setdefault(pack, files.manifest())
        stem = module.replace(".", "/")
        package = f"{stem}/__init__.py".removeprefix("/")
        for name in (package, f"{stem}.py"):
            if name in manifest:
                loader = _SealedLoader(files.folder / name, manifest[name])
                origin = str(files.folder / name)
                return ModuleSpec(fullname, loader, origin=origin, is_package=name == package)
        if not stem or any(name.startswith(f"{stem}/") for name in manifest):
            return ModuleSpec(fullname, None, is_package=True)
        return None


class _SealedLoader(InspectLoader):
    """Compiles a file whose content has the hash that the pack's digest covers, and no other."""

    def __init__(self, path: Path, sha256: str) -> None:
        self._path = path
        self._sha256 = sha256

    def get_source(self, fullname: str) -> str:
        return self._content().decode("utf-8")

    def get_code(self, fullname: str) -> CodeType:
        # Not from `__pycache__`, and nothing is written there: the digest does not cover it.
        return self.source_to_code(self._content(), str(self._path))

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self._path)
        super().exec_module(module)

    def _content(self) -> bytes:
        content = self._path.read_bytes()
        if hashlib.sha256(content).hexdigest() != self._sha256:
            raise ToolBroke(
                f"{str(self._path)!r} has changed since the pack was loaded, and was not run; restart Podium"
            )
        return content


_FINDER = _PackFinder()
