"""Packs: registries of an operator's tools, checked whole, and the handlers behind them."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.tools.packs.beginning import write_new_pack
    from podium.tools.packs.code import PackCode
    from podium.tools.packs.files import REGISTRY_FILE, pack_digest
    from podium.tools.packs.finding import PackFolder, find_pack, list_packs
    from podium.tools.packs.handlers import performer, python_handler
    from podium.tools.packs.loading import load_pack
    from podium.tools.packs.performing import pack_tools
    from podium.tools.packs.published import published_schema
    from podium.tools.packs.scope import PackFunction, PackScope, RowReader
    from podium.tools.packs.shipped import shipped_packs

__all__ = [
    "REGISTRY_FILE",
    "PackCode",
    "PackFolder",
    "PackFunction",
    "PackScope",
    "RowReader",
    "find_pack",
    "list_packs",
    "load_pack",
    "pack_digest",
    "pack_tools",
    "performer",
    "published_schema",
    "python_handler",
    "shipped_packs",
    "write_new_pack",
]

export_lazily(
    __name__,
    {
        "write_new_pack": "beginning",
        "PackCode": "code",
        "REGISTRY_FILE": "files",
        "pack_digest": "files",
        "PackFolder": "finding",
        "find_pack": "finding",
        "list_packs": "finding",
        "performer": "handlers",
        "python_handler": "handlers",
        "load_pack": "loading",
        "pack_tools": "performing",
        "published_schema": "published",
        "PackFunction": "scope",
        "PackScope": "scope",
        "RowReader": "scope",
        "shipped_packs": "shipped",
    },
)
