"""Files are opened by folder handles: nothing is followed, nothing is waited for, and no handle stays open."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podium.platform.safe_open import (
    FileTooLarge,
    LinkInTheWay,
    NotFolder,
    NotPlainFile,
    UnusableFile,
    create_new,
    open_folder,
    open_or_create,
    open_plain,
    read_file,
    read_start,
    status_at,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def no_handle_stays_open() -> Iterator[None]:
    before = len(os.listdir("/dev/fd"))
    yield
    assert len(os.listdir("/dev/fd")) == before


def place(folder: Path, kind: str) -> None:
    """Let something that is no plain file have the name."""
    name = folder / kind
    match kind:
        case "link":
            (folder / "real").write_text("real")
            name.symlink_to("real")
        case "dangling":
            name.symlink_to(folder / "nothing")
        case "loop":
            name.symlink_to(name)
        case "folder":
            name.mkdir()
        case "pipe":
            os.mkfifo(name)
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                home = os.getcwd()
                os.chdir(folder)  # a socket takes a short path only
                server.bind(kind)
                os.chdir(home)


KINDS = ["link", "dangling", "loop", "folder", "pipe", "socket"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_handle", [True, False])
def test_what_is_no_plain_file_is_not_read_and_not_waited_for(
    root: Path, kind: str, by_handle: bool
) -> None:
    place(root, kind)
    name = kind if by_handle else root / kind
    with open_folder(root) as folder, pytest.raises(OSError) as caught:
        read_file(name, 100, folder if by_handle else None)
    assert isinstance(caught.value, NotPlainFile)
    assert str(caught.value).startswith(repr(str(name)))


@pytest.mark.parametrize("kind", ["link", "dangling", "loop", "pipe", "socket"])
def test_what_is_no_plain_file_is_not_opened_to_be_written(root: Path, kind: str) -> None:
    place(root, kind)
    with pytest.raises(NotPlainFile):
        open_or_create(root / kind)
    with pytest.raises(FileExistsError):
        create_new(root / kind)
    assert not (root / "nothing").exists()
    assert kind != "link" or (root / "real").read_text() == "real"


def test_persons_own_link_is_followed_where_that_is_requested(root: Path) -> None:
    place(root, "link")
    assert read_file(root / "link", 100, follow=True) == b"real"
    os.close(open_or_create(root / "link", follow=True))


def test_a_pipe_behind_a_persons_own_link_is_not_waited_for(root: Path) -> None:
    place(root, "pipe")
    (root / "to-pipe").symlink_to("pipe")
    with pytest.raises(NotPlainFile):
        read_file(root / "to-pipe", 100, follow=True)


def test_a_second_name_is_refused_only_where_that_is_asked_for(root: Path) -> None:
    (root / "one").write_text("mine")
    (root / "two").hardlink_to(root / "one")
    assert read_file(root / "two", 100) == b"mine"
    for act in (
        lambda: read_file(root / "two", 100, single_name=True),
        lambda: open_or_create(root / "two", single_name=True),
    ):
        with pytest.raises(NotPlainFile, match="hard link: the file has 2 names"):
            act()


def test_a_file_is_read_whole_or_from_its_start(root: Path) -> None:
    (root / "big").write_bytes(b"12345")
    assert read_file(root / "big", 5) == b"12345"
    assert read_start(root / "big", 3) == b"123"
    with pytest.raises(FileTooLarge, match="larger than 4 bytes"):
        read_file(root / "big", 4)


def test_a_file_that_is_not_there_is_no_unusable_one(root: Path) -> None:
    with open_folder(root) as folder:
        assert status_at(folder, "x") is None
        with pytest.raises(FileNotFoundError):
            open_plain("x", folder)
    with pytest.raises(FileNotFoundError):
        open_plain(root / "x")


def test_new_files_are_private(root: Path) -> None:
    os.close(open_or_create(root / "a"))
    os.close(create_new(root / "b"))
    assert [stat.S_IMODE((root / name).stat().st_mode) for name in "ab"] == [0o600, 0o600]


def test_a_child_process_inherits_no_handle(root: Path) -> None:
    (root / "a").write_text("")
    with open_folder(root) as folder:
        for handle in (open_plain("a", folder), open_or_create("b", folder)):
            assert not os.get_inheritable(handle)
            os.close(handle)
        assert not os.get_inheritable(folder)


@pytest.mark.parametrize("make", [False, True])
def test_link_in_place_of_a_folder_is_distinguished_from_a_file(
    root: Path, tmp_path: Path, make: bool
) -> None:
    (root / "way").symlink_to(tmp_path)
    (root / "file").write_text("x")
    with (
        pytest.raises(LinkInTheWay, match="symbolic link, 'way', in place"),
        open_folder(root, "way/inner", make=make),
    ):
        pass
    with (
        pytest.raises(NotFolder, match="file, 'file', in place") as caught,
        open_folder(root, "file/inner", make=make),
    ):
        pass
    assert not isinstance(caught.value, LinkInTheWay)
    assert caught.value.filename == "file/inner"
    assert sorted(os.listdir(tmp_path)) == ["root"]


@pytest.mark.parametrize("kind", KINDS)
def test_obstacle_is_replaced_where_that_is_requested(
    root: Path, tmp_path: Path, kind: str
) -> None:
    place(root, kind)
    with open_folder(root, f"{kind}/inner", make=True, mode=0o700, replace=True):
        pass
    assert stat.S_ISDIR((root / kind).lstat().st_mode)
    assert stat.S_IMODE((root / kind / "inner").stat().st_mode) == 0o700
    assert not (root / "nothing").exists()


def test_a_root_is_followed_only_as_a_persons_word(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    with pytest.raises(OSError), open_folder(link):
        pass
    with open_folder(link, "made", make=True, follow_root=True):
        pass
    assert (root / "made").is_dir()


@pytest.mark.parametrize("relative", ["../a", "a/../../b", "/etc"])
def test_a_way_that_leads_out_is_refused_before_anything_is_made(
    root: Path, tmp_path: Path, relative: str
) -> None:
    with (
        pytest.raises(UnusableFile, match="below the root"),
        open_folder(root, relative, make=True),
    ):
        pass
    assert sorted(os.listdir(tmp_path)) == ["root"]
    assert os.listdir(root) == []


def test_folders_are_made_only_where_that_is_asked_for(root: Path) -> None:
    with pytest.raises(FileNotFoundError, match="a/b"), open_folder(root, "a/b"):
        pass
    with open_folder(root, "a/b", make=True), open_folder(root, "a/b", make=True):
        pass
    assert (root / "a/b").is_dir()


def test_a_folder_that_was_opened_is_used_whatever_has_its_name_by_now(
    root: Path, tmp_path: Path
) -> None:
    (root / "a").mkdir()
    (root / "a/f").write_text("mine")
    (tmp_path / "f").write_text("yours")
    read: Callable[[int], bytes] = lambda folder: read_file("f", 100, folder)  # noqa: E731
    with open_folder(root, "a") as folder:
        (root / "a").rename(root / "b")
        (root / "a").symlink_to(tmp_path)
        assert read(folder) == b"mine"
