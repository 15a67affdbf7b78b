"""Exports of a package that load their module when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType


def export_lazily(package: str, modules: Mapping[str, str]) -> None:
    """Give the package the attributes named in `modules`, each taken from that module of it on first use.

    An export wins over a module of the same name, as it does with imports in `__init__.py`.
    """

    class LazyPackage(ModuleType):
        def __getattr__(self, name: str) -> object:
            if name not in modules:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            value: object = getattr(import_module(f"{package}.{modules[name]}"), name)
            self.__dict__[name] = value
            return value

        def __setattr__(self, name: str, value: object) -> None:
            # The import system binds every module that it loads to the package it lies in.
            if not (name in modules and isinstance(value, ModuleType)):
                super().__setattr__(name, value)

    sys.modules[package].__class__ = LazyPackage
