"""Photos and files: in the inbox, on disk under their hashes, aside and back."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.integration.packs.roofing.office import Office, open_office

PHOTO = b"\x89PNG\r\n\x1a\n" + b"a roof" * 20
SHA256 = hashlib.sha256(PHOTO).hexdigest()
CONTENT = base64.b64encode(PHOTO).decode()


@pytest.fixture
def office(tmp_path: Path) -> Office:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "ridge.png").write_bytes(PHOTO)
    return open_office(tmp_path, {"ROOFING_MEDIA_INBOX": str(inbox)})


def file_of(office: Office, asset: dict[str, Any]) -> Path:
    row = office.row("media_assets", asset["asset_id"])
    return office.state / "media" / str(row["stored_as"])


@pytest.mark.parametrize("given", [{"path": "ridge.png"}, {"content": CONTENT}])
async def test_a_photo_is_kept_under_its_hash(office: Office, given: dict[str, str]) -> None:
    made = await office.do(
        "media.create_asset", file_name="ridge.png", caption="north", sha256=SHA256, **given
    )
    assert file_of(office, made).read_bytes() == PHOTO
    assert (made["sha256"], made["bytes"], made["media_type"]) == (SHA256, len(PHOTO), "image/png")
    assert office.row("media_assets", made["asset_id"])["caption"] == "north"


async def test_a_file_that_is_not_the_one_meant_is_refused(office: Office) -> None:
    await office.lead()
    words = await office.refused(
        "media.create_asset", file_name="ridge.png", path="ridge.png", sha256="0" * 64
    )
    assert SHA256 in words


@pytest.mark.parametrize("path", ["../outside.png", "/etc/hostname", "link.png"])
async def test_a_path_out_of_the_inbox_is_refused(
    office: Office, tmp_path: Path, path: str
) -> None:
    (tmp_path / "outside.png").write_bytes(PHOTO)
    (tmp_path / "inbox" / "link.png").symlink_to(tmp_path / "outside.png")
    await office.lead()
    words = await office.refused("media.create_asset", file_name="x.png", path=path)
    assert "ROOFING_MEDIA_INBOX" in words


async def test_a_file_that_is_not_there_is_named(office: Office) -> None:
    await office.lead()
    words = await office.refused("media.create_asset", file_name="x.png", path="x.png")
    assert "cannot be read" in words


async def test_a_photo_belongs_to_an_open_inspection(office: Office) -> None:
    made = await office.do(
        "inspection.create", lead_id=await office.lead(), site_address="1 High St"
    )
    inspection_id = made["inspection_id"]
    photo = {"file_name": "ridge.png", "content": CONTENT, "inspection_id": inspection_id}
    asset = await office.do("media.create_asset", **photo)
    shown = (await office.do("os.get_inspection", inspection_id=inspection_id))["inspection"]
    assert [item["id"] for item in shown["photos"]] == [asset["asset_id"]]
    await office.do("inspection.cancel", inspection_id=inspection_id)
    assert "is cancelled" in await office.refused("media.create_asset", **photo)


async def test_a_photo_of_one_inspection_is_not_put_under_another(office: Office) -> None:
    photo = await office.do("media.create_asset", file_name="ridge.png", content=CONTENT)
    lead_id, ids = await office.lead(), [photo["asset_id"]]
    given = {"lead_id": lead_id, "site_address": "1 High St", "asset_ids": ids}
    first = await office.do("inspection.create", **given)
    assert first["inspection_id"] in await office.refused("inspection.create", **given)


async def test_removed_photo_is_kept_and_comes_back(office: Office) -> None:
    made = await office.do("media.create_asset", file_name="ridge.png", content=CONTENT)
    file = file_of(office, made)
    removed = await office.undo("media.create_asset", made)
    assert not file.exists()
    assert "is removed" in await office.refused("media.verify_asset", asset_id=made["asset_id"])
    restored = await office.undo("media.remove_asset", removed)
    assert file.read_bytes() == PHOTO
    await office.undo("media.restore_asset", restored)
    assert not file.exists()


async def test_a_file_stays_while_another_asset_shows_it(office: Office) -> None:
    one = await office.do("media.create_asset", file_name="one.png", content=CONTENT)
    two = await office.do("media.create_asset", file_name="two.png", content=CONTENT)
    await office.do("media.remove_asset", asset_id=one["asset_id"])
    assert (await office.do("media.verify_asset", asset_id=two["asset_id"]))["intact"]


async def test_a_changed_file_is_found_out(office: Office) -> None:
    made = await office.do("media.create_asset", file_name="ridge.png", content=CONTENT)
    assert (await office.do("media.verify_asset", asset_id=made["asset_id"]))["intact"]
    file_of(office, made).write_bytes(PHOTO + b"!")
    response = await office.do("media.verify_asset", asset_id=made["asset_id"])
    assert (response["intact"], response["recorded_sha256"]) == (False, SHA256)
    assert response["sha256"] != SHA256


async def test_without_a_setting_the_inbox_is_in_the_packs_own_folder(tmp_path: Path) -> None:
    office = open_office(tmp_path)
    (office.state / "inbox").mkdir(parents=True)
    (office.state / "inbox" / "ridge.png").write_bytes(PHOTO)
    made = await office.do("media.create_asset", file_name="ridge.png", path="ridge.png")
    assert made["sha256"] == SHA256
