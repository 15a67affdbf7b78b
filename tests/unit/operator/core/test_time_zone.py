"""`today` is where the business is, not where the machine is."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.app.packs import zone_of
from podium.core.errors import BadInput
from podium.core.packs import Pack, PackSetting
from podium.tools.packs import load_pack
from tests.unit.operator.core.shop import Shop


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    return load_pack(Shop(tmp_path).pack_folder)


def _in_zone(pack: Pack, zone: str) -> Pack:
    settings = (PackSetting(name="SHOP_ZONE", default="Australia/Perth"),)
    registry = pack.registry.model_copy(update={"time_zone": zone, "settings": settings})
    return pack.model_copy(update={"registry": registry})


@pytest.mark.parametrize(
    ("text", "environ", "zone"),
    [
        ("Australia/Melbourne", {}, "Australia/Melbourne"),
        ("SHOP_ZONE", {}, "Australia/Perth"),
        ("SHOP_ZONE", {"SHOP_ZONE": "Europe/Berlin"}, "Europe/Berlin"),
        ("", {}, "None"),
    ],
)
def test_a_pack_names_its_zone_or_the_setting_that_does(
    pack: Pack, text: str, environ: dict[str, str], zone: str
) -> None:
    assert str(zone_of(_in_zone(pack, text), environ)) == zone


def test_unknown_zone_is_reported(pack: Pack) -> None:
    with pytest.raises(BadInput, match="SHOP_ZONE is 'Mars/Olympus'"):
        zone_of(_in_zone(pack, "SHOP_ZONE"), {"SHOP_ZONE": "Mars/Olympus"})
    with pytest.raises(BadInput, match="not a time zone"):
        zone_of(_in_zone(pack, "../../etc/passwd"), {})
