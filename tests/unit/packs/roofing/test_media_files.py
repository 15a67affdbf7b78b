"""Photos and papers on disk: whole, private, named by their hash, never more than was meant."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from pathlib import Path

import pytest
from packs.roofing.media_files import (
    MAX_BYTES,
    media_type_of,
    read_stored,
    remove_file,
    restore_file,
    store_file,
    verify_file,
)

from podium.core.errors import ToolBroke
from tests.unit.packs.roofing.roofing_harness import pack_scope

PHOTO = b"\xff\xd8\xff\xe0" + b"a roof" * 1000
SHA = hashlib.sha256(PHOTO).hexdigest()


async def test_a_photo_is_kept_under_its_hash_and_only_once(tmp_path: Path) -> None:
    scope = pack_scope(tmp_path / "state")
    photo = tmp_path / "IMG 1.exe"
    photo.write_bytes(PHOTO)
    stored = await store_file(scope, path=str(photo), sha256=SHA.upper())
    again = await store_file(scope, content=base64.b64encode(PHOTO).decode())
    raw = await store_file(scope, content=PHOTO)
    assert stored == again == raw
    assert (stored.sha256, stored.bytes, stored.media_type) == (SHA, len(PHOTO), "image/jpeg")
    assert stored.stored_as == f"{SHA[:2]}/{SHA[2:4]}/{SHA}.jpg"
    files = [path for path in (tmp_path / "state" / "media").rglob("*") if path.is_file()]
    assert [file.read_bytes() for file in files] == [PHOTO]
    assert files[0].stat().st_mode & 0o777 == 0o600
    assert await read_stored(scope, stored.stored_as) == PHOTO


async def test_one_file_stored_by_many_at_once_is_whole(tmp_path: Path) -> None:
    scope = pack_scope(tmp_path)
    found = await asyncio.gather(*(store_file(scope, content=PHOTO) for _ in range(20)))
    assert len(set(found)) == 1
    assert (await verify_file(scope, found[0].stored_as, SHA)).ok
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


async def test_removed_file_is_kept_and_comes_back(tmp_path: Path) -> None:
    scope = pack_scope(tmp_path)
    stored = await store_file(scope, content=PHOTO)
    for _ in range(2):
        await remove_file(scope, stored.stored_as)
        gone = await verify_file(scope, stored.stored_as, SHA)
        assert (gone.ok, gone.problem) == (False, "the file is missing")
    for _ in range(2):
        await restore_file(scope, stored.stored_as)
        assert (await verify_file(scope, stored.stored_as, SHA)).ok
    (tmp_path / "media" / stored.stored_as).unlink()
    for attempt in (remove_file, restore_file):
        with pytest.raises(ToolBroke, match="is missing; restore it from a backup"):
            await attempt(scope, stored.stored_as)


async def test_a_file_that_was_changed_on_disk_is_found_and_mended(tmp_path: Path) -> None:
    scope = pack_scope(tmp_path)
    stored = await store_file(scope, content=PHOTO)
    (tmp_path / "media" / stored.stored_as).write_bytes(PHOTO[:-1] + b"!")
    found = await verify_file(scope, stored.stored_as, SHA)
    assert (found.ok, found.problem) == (False, "the file has changed since it was stored")
    assert found.sha256 != SHA
    await store_file(scope, content=PHOTO)
    assert (await verify_file(scope, stored.stored_as, SHA)).ok


async def test_only_a_regular_file_with_a_photo_video_or_paper_is_taken(tmp_path: Path) -> None:
    scope = pack_scope(tmp_path / "state")
    secret = tmp_path / "id_ed25519"
    secret.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(PHOTO)
    link = tmp_path / "link.jpg"
    link.symlink_to(photo)
    pipe = tmp_path / "pipe.jpg"
    os.mkfifo(pipe)
    for path, words in (
        (secret, "is not a photo, video or PDF"),
        (link, "cannot be read"),
        (pipe, "is not a regular file"),
        (tmp_path, "is not a regular file"),
        (tmp_path / "nothing.jpg", "No such file"),
        (Path("/dev/zero"), "is not a regular file"),
    ):
        with pytest.raises(ToolBroke, match=words):
            await store_file(scope, path=str(path))
    with pytest.raises(ToolBroke, match="cannot be read"):
        await store_file(scope, path="a\0b")
    assert not (tmp_path / "state").exists()


async def test_content_that_cannot_be_right_is_refused(tmp_path: Path) -> None:
    scope = pack_scope(tmp_path)
    huge = tmp_path / "huge.jpg"
    with huge.open("wb") as file:
        file.write(PHOTO)
        file.truncate(MAX_BYTES + 1)
    for given, words in (
        ({"content": "not base64!"}, "is not base64"),
        ({"content": "ä"}, "is not base64"),
        ({"content": ""}, "is empty"),
        ({"content": b"x", "sha256": "0" * 64}, "does not match the expected hash"),
        ({"content": b"x", "path": "y"}, "either the path of a file or its content"),
        ({}, "either the path of a file or its content"),
        ({"content": bytes(MAX_BYTES + 1)}, "larger than 50 MB"),
        ({"content": "A" * (MAX_BYTES * 4 // 3 + 5)}, "larger than 50 MB"),
        ({"path": str(huge)}, "larger than 50 MB"),
    ):
        with pytest.raises(ToolBroke, match=words):
            await store_file(scope, **given)
    assert not (tmp_path / "media").exists()


@pytest.mark.parametrize("place", ["../../etc/passwd", "/etc/passwd", "", f"aa/bb/{'c' * 64}.jpg"])
async def test_a_place_that_is_not_ours_is_refused(tmp_path: Path, place: str) -> None:
    scope = pack_scope(tmp_path)
    for attempt in (remove_file, restore_file, read_stored):
        with pytest.raises(ToolBroke, match="is not a stored file"):
            await attempt(scope, place)


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"GIF89a....", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", "application/octet-stream"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "image/heic"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0", "video/mp4"),
        (b"\0\0\0\x14ftypqt  \0\0\0\0", "video/quicktime"),
        (b"II*\0....", "image/tiff"),
        (b"%PDF-1.7", "application/pdf"),
        (b"<svg onload=alert(1)>", "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
def test_a_file_is_what_its_first_bytes_say(start: bytes, kind: str) -> None:
    assert media_type_of(start)[0] == kind
