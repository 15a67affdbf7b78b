"""Previews of what calls of a pack send out of the machine, for the people who approve them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import cast

from podium.core.errors import ToolBroke
from podium.core.model import Json
from podium.core.packs import Pack, PackTool
from podium.core.plan_approval import Outgoing
from podium.platform import make_private_folder
from podium.tools.packs.handlers import PackFunction, PackScope, python_handler, settings_of
from podium.tools.packs.pack_code import PackCode
from podium.tools.packs.pack_handler import PackSecrets

MAX_SECONDS = 10.0
"""A person waits for it."""
_FIELDS = ("to", "subject", "amount", "text")


async def preview_call(
    pack: Pack,
    tool: PackTool,
    arguments: Mapping[str, Json],
    *,
    settings: Mapping[str, str],
    state: Path,
    now: datetime,
) -> Outgoing | None:
    """Preview what a call with these arguments would send now; None for a tool without a preview.

    A preview that fails does not keep anybody from deciding: its problem is shown instead. `settings` is the
    environment, of which declared names are handed on.
    """
    if not tool.preview:
        return None
    declared = settings_of(pack, settings)
    hiding = PackSecrets.of(pack, declared)
    scope = PackScope(
        key="preview",
        tool=tool.name,
        now=now,
        settings=declared,
        folder=Path(pack.folder),
        state=state,
        timeout_seconds=MAX_SECONDS,
    )
    try:
        make_private_folder(state)
        show = cast(PackFunction, await PackCode(pack).ready(python_handler(tool.preview)))
        async with asyncio.timeout(MAX_SECONDS):
            return _outgoing(hiding.json(await show(dict(arguments), scope)))
    except TimeoutError:
        return Outgoing(problem=f"its preview took longer than {MAX_SECONDS:g} s")
    except ToolBroke as error:
        return Outgoing(problem=hiding.text(str(error)))
    except Exception as error:
        return Outgoing(problem=f"its preview failed: {type(error).__name__}")


def _outgoing(shown: Json) -> Outgoing:
    if not isinstance(shown, dict):
        return Outgoing(problem=f"its preview returned {type(shown).__name__} instead of an object")
    texts = {name: str(shown[name]) for name in _FIELDS if shown.get(name) not in (None, "")}
    attachments = tuple(map(str, shown.get("attachments") or ()))
    return Outgoing(**texts, attachments=attachments)
