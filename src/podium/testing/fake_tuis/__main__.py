"""Start a fake TUI: `python -IS fake_tuis KIND RECORD [ANSWERS]`. Loads nothing of Podium but this folder, for speed."""

import importlib
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_MODULES = {"echo": "line_programs", "repl": "line_programs"}
"""Modules of the kinds that are no variants of the composer."""
_NAMES = ("podium", "podium.testing", "podium.testing.fake_tuis")


def main(kind: str, record: str, answers: str = "") -> None:
    for name, folder in zip(_NAMES, (_HERE.parents[1], _HERE.parent, _HERE), strict=True):
        package = sys.modules[name] = type(sys)(name)
        package.__path__ = [str(folder)]
    module = importlib.import_module(f"podium.testing.fake_tuis.{_MODULES.get(kind, 'variants')}")
    if kind not in module.KINDS:
        sys.exit(f"unknown kind {kind!r}; kinds: {', '.join((*_MODULES, *module.KINDS))}")
    module.KINDS[kind](record, answers).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
