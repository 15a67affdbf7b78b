"""Packs: registries of an operator's tools, checked whole, and the handlers behind them."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.tools.packs.files import (
        CORPUS_FILE,
        REGISTRY_FILE,
        PackFolder,
        find_pack,
        list_packs,
        pack_digest,
        shipped_packs,
        write_new_pack,
    )
    from podium.tools.packs.handlers import (
        PackFunction,
        PackScope,
        RowReader,
        performer,
        python_handler,
    )
    from podium.tools.packs.pack_code import PackCode
    from podium.tools.packs.pack_handler import pack_tools
    from podium.tools.packs.pack_loader import load_pack
    from podium.tools.packs.preview import preview_call
    from podium.tools.packs.registry_file import (
        ProblemCollector,
        published_schema,
        registry_problems,
    )

__all__ = [
    "CORPUS_FILE",
    "REGISTRY_FILE",
    "PackCode",
    "PackFolder",
    "PackFunction",
    "PackScope",
    "ProblemCollector",
    "RowReader",
    "find_pack",
    "list_packs",
    "load_pack",
    "pack_digest",
    "pack_tools",
    "performer",
    "preview_call",
    "published_schema",
    "python_handler",
    "registry_problems",
    "shipped_packs",
    "write_new_pack",
]

export_lazily(
    __name__,
    {
        "write_new_pack": "files",
        "PackCode": "pack_code",
        "CORPUS_FILE": "files",
        "REGISTRY_FILE": "files",
        "pack_digest": "files",
        "PackFolder": "files",
        "find_pack": "files",
        "list_packs": "files",
        "performer": "handlers",
        "python_handler": "handlers",
        "load_pack": "pack_loader",
        "pack_tools": "pack_handler",
        "preview_call": "preview",
        "ProblemCollector": "registry_file",
        "published_schema": "registry_file",
        "registry_problems": "registry_file",
        "PackFunction": "handlers",
        "PackScope": "handlers",
        "RowReader": "handlers",
        "shipped_packs": "files",
    },
)
