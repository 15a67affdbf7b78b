"""Handlers are there: looked for in the text of the pack's modules, which is not run for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from podium.core.errors import PackInvalid
from podium.core.packs import PackTool
from podium.tools.packs.checks.registry_check import RegistryCheck
from podium.tools.packs.files import PackSnapshot, is_shipped
from podium.tools.packs.handlers import (
    PythonHandler,
    RecordsHandler,
    ServiceHandler,
    argument_names,
    handler_of,
    python_handler,
    settings_in,
)

Defined = dict[str, ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef | None]
"""Names at the top of a module. None: assigned, imported or decorated, so its text does not say more."""


def check(registry_check: RegistryCheck) -> None:
    modules = PackModules(registry_check.files)
    declared = {setting.name for setting in registry_check.registry.settings}
    for location, tool in registry_check.located_tools():
        try:
            handler = handler_of(tool.handler)
            if isinstance(handler, PythonHandler):
                modules.check(handler, parameters=2)
            elif isinstance(handler, ServiceHandler) and not is_shipped(
                registry_check.files.folder
            ):
                raise ValueError("only packs that ship with Podium may use its services")
            elif isinstance(handler, RecordsHandler):
                _check_records(handler, tool)
        except ValueError as error:
            registry_check.problems.add(f"{location}/handler", str(error))
            continue
        try:
            if tool.preview:
                modules.check(python_handler(tool.preview), parameters=2)
        except ValueError as error:
            registry_check.problems.add(f"{location}/preview", str(error))
        for name in sorted(settings_in(handler) - declared):
            registry_check.problems.add(
                f"{location}/handler", f"${{{name}}} is not among the declared settings"
            )
    beside = [("/reader", registry_check.registry.reader, 4)]
    for number, shape in enumerate(registry_check.registry.contexts):
        beside.append((f"/contexts/{number}/check", shape.check, 1))
    for location, written, parameters in beside:
        try:
            if written:
                modules.check(python_handler(written), parameters)
        except ValueError as error:
            registry_check.problems.add(location, str(error))


def _check_records(handler: RecordsHandler, tool: PackTool) -> None:
    """Raise `ValueError` for what refers to an argument that the tool does not have."""
    if unknown := argument_names(handler) - set(tool.properties):
        raise ValueError(f"records: {min(unknown)!r} is not an argument of {tool.name}")
    if handler.update and f"{handler.id}_id" not in tool.required:
        raise ValueError(f"records: {tool.name} needs the required argument '{handler.id}_id'")


class PackModules:
    """The modules of a pack's folder, each parsed once."""

    def __init__(self, files: PackSnapshot) -> None:
        self._files = files
        self._parsed: dict[str, Defined] = {}

    def check(self, handler: PythonHandler, parameters: int) -> None:
        """Raise `ValueError` unless the function is there and takes so many arguments."""
        file = self._file(handler.module)
        if file not in self._parsed:
            self._parsed[file] = self._defined(file)
        names = self._parsed[file]
        if handler.function not in names:
            raise ValueError(f"{file} has no function {handler.function!r}")
        definition = names[handler.function]
        if definition is None:
            return
        if not isinstance(definition, ast.AsyncFunctionDef):
            raise ValueError(
                f"{file}:{definition.lineno}: {definition.name!r} must be an `async def`"
            )
        if not _takes(definition.args, parameters):
            count = f"{parameters} positional argument{'s' if parameters > 1 else ''}"
            raise ValueError(f"{file}:{definition.lineno}: {definition.name!r} must take {count}")

    def _file(self, module: str) -> str:
        stem = module.replace(".", "/")
        package = f"{stem}/__init__.py"
        return self._files.name_of(package if package in self._files.hashes else f"{stem}.py")

    def _defined(self, file: str) -> Defined:
        try:
            tree = ast.parse(self._files.content(file), file)
        except SyntaxError as error:
            raise ValueError(f"{file}:{error.lineno or 1}: not valid Python: {error.msg}") from None
        except PackInvalid as invalid:
            raise ValueError(f"{file} {invalid.problems[0].problem}") from None
        except (ValueError, RecursionError, MemoryError) as error:
            reason = str(error) or "it is nested too deep"
            raise ValueError(f"{file} cannot be read: {reason}") from None
        return dict(_names(tree.body))


def _names(
    body: list[ast.stmt],
) -> Iterator[tuple[str, ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef | None]]:
    for node in body:
        if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef):
            yield node.name, None if node.decorator_list else node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (
                (alias.asname or alias.name.partition(".")[0], None) for alias in node.names
            )
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((target.id, None) for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _names(node.body)
            yield from _names(getattr(node, "orelse", []))


def _takes(arguments: ast.arguments, number: int) -> bool:
    """Check that so many arguments can be passed by position."""
    positional = len(arguments.posonlyargs) + len(arguments.args)
    least = positional - len(arguments.defaults)
    keyword_only = any(default is None for default in arguments.kw_defaults)
    most = positional if arguments.vararg is None else number
    return least <= number <= max(most, positional) and not keyword_only
