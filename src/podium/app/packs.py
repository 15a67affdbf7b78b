"""Packs of tools: found by name or folder, checked, and trusted unless they came with Podium."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from podium.config.trust import TrustBook
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.packs import Pack

if TYPE_CHECKING:
    from podium.app.app import Podium


def open_pack(podium: Podium, name: str) -> Pack:
    """The pack of this name or folder, checked whole and, unless it came with Podium, trusted."""
    from podium.tools.packs import find_pack, load_pack, shipped_packs

    shipped = shipped_packs()
    folder = find_pack(name, project=podium.folders.project, shipped=shipped)
    pack = load_pack(folder)
    if not folder.is_relative_to(shipped.resolve()) and not trusts_pack(podium, pack):
        raise NotPossibleNow(
            f"pack {pack.name!r} in {str(folder)!r} has code that is not trusted as it is now; "
            f"review it, then run `podium pack trust {folder}`"
        )
    return pack


def is_shipped(pack: Pack) -> bool:
    from podium.tools.packs import shipped_packs

    return Path(pack.folder).is_relative_to(shipped_packs().resolve())


def zone_of(pack: Pack, environ: Mapping[str, str]) -> tzinfo | None:
    """Time zone of `today` according to the pack. None: the zone of this machine.

    Raises `BadInput` for a zone that nobody knows.
    """
    named = pack.registry.time_zone
    setting = next(
        (candidate for candidate in pack.registry.settings if candidate.name == named), None
    )
    zone = (environ.get(setting.name) or setting.default) if setting else named
    if not zone:
        return None
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        of = f"{setting.name} is" if setting else "its time_zone is"
        raise BadInput(
            f"pack {pack.name!r}: {of} {zone!r}, which is not a time zone; use one such as Australia/Melbourne"
        ) from None


def trusts_pack(podium: Podium, pack: Pack) -> bool:
    """True when a person trusts this pack with exactly these files."""
    return TrustBook(podium.folders.user_state).trusts(pack_file(pack), pack.digest)


def pack_file(pack: Pack) -> Path:
    from podium.tools.packs import REGISTRY_FILE

    return Path(pack.folder) / REGISTRY_FILE


def shipped_pack_names() -> list[str]:
    """The packs that come with Podium."""
    from podium.tools.packs import REGISTRY_FILE, shipped_packs

    return sorted(file.parent.name for file in shipped_packs().glob(f"*/{REGISTRY_FILE}"))
