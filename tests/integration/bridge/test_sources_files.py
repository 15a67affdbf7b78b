"""Files as sources find them: whatever state they are in, the look says it and nothing breaks."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podium.jobs.sense.io import FileSource, FolderSource, LogSource
from podium.jobs.sense.io.sources import file_selection
from podium.jobs.sense.io.sources.file_selection import NotSensed
from podium.jobs.sense.models import Condition
from tests.unit.bridge.sources_harness import LONG_AGO, SECRET, Harness, names, only

DEEP = 5_000
LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20)
)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.json", '{"status": "ok", "checks": [1, 2.5, null, true]}', None),
        ("a.json", b'\xef\xbb\xbf{"bom": true}', {"bom": True}),
        ("a.yaml", "state: running\nsince: 2025-11-27\nyes: no\n", None),
        ("a.YML", "- 1\n- ~\n", [1, None]),
        ("notes.md", "all well\n", "all well\n"),
        ("empty.txt", "", ""),
    ],
)
async def test_a_file_is_read_by_the_ending_of_its_name(
    harness: Harness, name: str, content: str | bytes, expected: object
) -> None:
    harness.write(name, content)
    sensed = await only(FileSource(harness.deps, "health", name))
    assert (sensed.condition, sensed.why, sensed.place) == ("ok", "", name)
    if expected is not None:
        assert sensed.content == expected
    elif name.endswith("json"):
        assert sensed.content == {"status": "ok", "checks": [1, 2.5, None, True]}
    else:
        assert sensed.content == {"state": "running", "since": "2025-11-27", "yes": "no"}


@pytest.mark.parametrize(
    ("name", "content", "condition", "words"),
    [
        ("a.json", '{"status": "o', "malformed", "not JSON"),
        ("a.json", "", "malformed", "empty"),
        ("a.yaml", " \n", "malformed", "empty"),
        ("a.yaml", "# only a comment\n", "malformed", "no value"),
        ("a.json", '{"a": NaN}', "malformed", "not a number"),
        ("a.json", '{"a": 1e999}', "malformed", "not a number"),
        ("a.json", "9" * 5_000, "malformed", "not JSON"),
        ("a.json", "[" * DEEP + "]" * DEEP, "malformed", "nested"),
        ("a.json", "[" * 150_000, "malformed", "nested"),
        ("a.json", "[" * 42 + "]" * 42, "malformed", "nested"),
        ("a.yaml", "[" * 150_000, "malformed", "nest"),
        ("a.yaml", "{a: " * DEEP, "malformed", "nest"),
        ("a.yaml", LAUGHS, "malformed", "aliases"),
        ("a.yaml", "a: &a [*a]\n", "malformed", "aliases"),
        ("a.yaml", "!!python/object/apply:os.system ['touch owned']", "malformed", "tag"),
        ("a.yaml", "x: !!python/name:os.system", "malformed", "tag"),
        ("a.yaml", "a: 1\n---\nb: 2\n", "malformed", "second document"),
        ("a.yaml", "a: [1, 2\nb: 3\n", "malformed", "not YAML"),
        ("a.yaml", "\ta: 1\n", "malformed", "not YAML"),
        ("a.json", b"PK\x03\x04\x00\x00", "binary", "NUL bytes"),
        ("a.json", '{"a": 1}'.encode("utf-16"), "binary", "NUL bytes"),
        ("a.txt", b"caf\xe9", "binary", "not valid UTF-8"),
        ("a.json", b'"\xed\xa0\x80"', "binary", "not valid UTF-8"),
    ],
)
async def test_unusable_content_is_reported_with_its_reason(
    harness: Harness, name: str, content: str | bytes, condition: Condition, words: str
) -> None:
    harness.write(name, content)
    sensed = await only(FileSource(harness.deps, "health", name))
    assert sensed.condition == condition
    assert words in sensed.why
    assert sensed.content is None
    assert not (harness.root / "owned").exists()


async def test_halves_of_characters_are_replaced_so_that_the_bundle_can_be_written(
    harness: Harness,
) -> None:
    harness.write("a.json", r'{"\ud800": "\udfff", "whole": "\ud83d\ude00"}')
    sensed = await only(FileSource(harness.deps, "health", "a.json"))
    assert sensed.content == {"?": "?", "whole": "😀"}


async def test_a_file_that_is_not_there_is_missing(harness: Harness) -> None:
    for place in ("no.json", "no/such/folder.json"):
        sensed = await only(FileSource(harness.deps, "health", place))
        assert (sensed.condition, sensed.why) == ("missing", "not found")
    assert (await FileSource(harness.deps, "health", "no.json").look()).total == 0


async def test_a_huge_file_is_named_and_not_read(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (harness.root / "a.json").open("wb") as file:
        file.truncate(50_000_000)
    opened = _counted_opens(monkeypatch)
    sensed = await only(FileSource(harness.deps, "health", "a.json"))
    assert (sensed.condition, sensed.content) == ("too_large", None)
    assert "50000000 bytes" in sensed.why
    assert opened == []


async def test_a_file_that_is_as_large_as_allowed_is_read(harness: Harness) -> None:
    harness.file_bytes = 10
    harness.write("a.txt", "x" * 10)
    harness.write("b.txt", "x" * 11)
    assert (await only(FileSource(harness.deps, "health", "a.txt"))).condition == "ok"
    assert (await only(FileSource(harness.deps, "health", "b.txt"))).condition == "too_large"


async def test_what_is_no_file_is_unreadable_and_nothing_waits_for_it(harness: Harness) -> None:
    os.mkfifo(harness.root / "pipe.json")
    (harness.root / "folder.json").mkdir()
    (harness.root / "nowhere.json").symlink_to("gone.json")
    (harness.root / "round.json").symlink_to("round.json")
    (harness.root / "device.json").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(harness.root / "socket.json"))
        for name, words in {
            "pipe.json": "named pipe",
            "folder.json": "folder",
            "nowhere.json": "broken link",
            "round.json": "symbolic links",
            "device.json": "leads outside",
            "socket.json": "socket",
            "pipe.json/inside.json": "not a directory",
            "a\0b.json": "not a valid file name",
            "x" * 300 + ".json": "too long",
        }.items():
            sensed = await only(FileSource(harness.deps, "health", name))
            assert (name, sensed.condition) == (name, "unreadable")
            assert words in sensed.why


async def test_no_symlink_and_no_path_leads_out_of_the_root(
    harness: Harness, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.json").write_text('{"secret": true}')
    harness.root = tmp_path / "root"
    harness.root.mkdir()
    (harness.root / "link.json").symlink_to("../outside/secret.json")
    (harness.root / "folder").symlink_to(outside)
    (harness.root / "chain.json").symlink_to("link.json")
    for place in ("link.json", "folder/secret.json", "chain.json", "../outside/secret.json"):
        sensed = await only(FileSource(harness.deps, "health", place))
        assert (sensed.condition, sensed.content) == ("unreadable", None)
        assert "leads outside the project folder" in sensed.why
    assert (await only(FolderSource(harness.deps, "acks", "folder"))).condition == "unreadable"
    absolute = await only(FileSource(harness.deps, "health", str(outside / "secret.json")))
    assert absolute.condition == "unreadable"


async def test_a_symlink_inside_the_root_is_followed_and_watched(harness: Harness) -> None:
    harness.write("real.json", "1")
    harness.write("acks/a.json", "1")
    (harness.root / "acks/link.json").symlink_to("../real.json")
    (harness.root / "other").symlink_to("acks")
    source = FolderSource(harness.deps, "acks", "other", pattern="*.json")
    before = await source.look()
    assert [item.content for item in before.found] == [1, 1]
    harness.write("real.json", "2", at=LONG_AGO + 1)
    after = await source.look()
    assert (names(after), after.found[0].content) == (["link.json", "a.json"], 2)
    assert after.mark != before.mark


async def test_a_folder_swapped_for_a_symlink_before_the_file_is_opened_leads_nowhere(
    harness: Harness, tmp_path: Path
) -> None:
    harness.root = tmp_path / "root"
    harness.write("state/a.json", '"inside"')
    (tmp_path / "a.json").write_text('"outside"')
    found = file_selection.find(harness.root, "state/a.json", lambda path: False)
    (harness.root / "state").rename(harness.root / "moved")
    (harness.root / "state").symlink_to(tmp_path)
    with pytest.raises(NotSensed) as raised:
        file_selection.read_whole(harness.root, found, 1_000)
    assert raised.value.condition == "unreadable"


async def test_file_that_changes_while_being_read_is_reread_or_reported_unfinished(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = harness.write("a.json", '{"n": 0}')
    real, writes = os.pread, iter(range(1, 100))

    def read_while_written(handle: int, length: int, start: int) -> bytes:
        content = real(handle, length, start)
        if (number := next(writes)) <= most:
            file.write_text(f'{{"n": {10**number}}}')
        return content

    # The moment between reading and asking what was read cannot be hit from outside.
    monkeypatch.setattr(os, "pread", read_while_written)
    most = 1
    assert (await FileSource(harness.deps, "health", "a.json").look()).found[0].content == {"n": 10}
    most = 1_000
    [sensed] = (await FileSource(harness.deps, "health", "a.json").look()).found
    assert (sensed.condition, sensed.content) == ("malformed", None)
    assert "changed while it was read" in sensed.why


async def test_what_may_not_be_read_is_unreadable(harness: Harness) -> None:
    with _readable_folder() as root:
        harness.root = root
        harness.write("a.json", "{}").chmod(0)
        harness.write("acks/b.json", "{}")
        (root / "acks").chmod(0)
        with _without_privileges():
            file = await only(FileSource(harness.deps, "health", "a.json"))
            folder = await only(FolderSource(harness.deps, "acks", "acks"))
        (root / "acks").chmod(0o755)
    assert (file.condition, file.why) == ("unreadable", "permission denied")
    assert (folder.condition, folder.why) == ("unreadable", "permission denied")


async def test_secrets_are_taken_out_of_values_keys_names_and_reasons(harness: Harness) -> None:
    content = {SECRET: [f"token {SECRET}"], "Authorization": "Basic dXNlcg==", "n": 7}
    harness.write(f"{SECRET}.yaml", str(content).replace("'", '"'))
    harness.write("bad.yaml", f"x: !<{SECRET}> 1")
    good = await only(FileSource(harness.deps, "health", f"{SECRET}.yaml"))
    assert good.content == {
        "[redacted]": ["token [redacted]"],
        "Authorization": "[hidden]",
        "n": 7,
    }
    bad = await only(FileSource(harness.deps, "health", "bad.yaml"))
    assert bad.condition == "malformed"
    assert SECRET not in good.model_dump_json() + bad.model_dump_json()
    assert "7" in harness.cleaned  # a secret may be a number


async def test_two_keys_that_are_both_secrets_keep_both_values(harness: Harness) -> None:
    harness.write("a.json", f'{{"{SECRET}": 1, "[redacted]": 2}}')
    sensed = await only(FileSource(harness.deps, "health", "a.json"))
    assert sorted(sensed.content.values()) == [1, 2]


async def test_a_log_shows_its_last_lines_however_long_it_is(harness: Harness) -> None:
    harness.file_bytes = 1_000
    harness.write("app.log", "".join(f"line {number}\n" for number in range(100_000)))
    sensed = await only(LogSource(harness.deps, "log", "app.log", lines=3))
    assert sensed.content == ["line 99997", "line 99998", "line 99999"]
    everything = await only(LogSource(harness.deps, "log", "app.log", lines=10_000))
    assert everything.content[0] == "line 99910"  # the first line that is whole


async def test_a_log_may_be_empty_turned_over_torn_or_no_log_at_all(harness: Harness) -> None:
    harness.file_bytes = 1_000
    source = LogSource(harness.deps, "log", "app.log", lines=2)
    assert (await only(source)).condition == "missing"
    harness.write("app.log", "")
    assert (await only(source)).content == []
    harness.write("app.log", b"\0" * 5_000 + b"after it was emptied\nlast, and no UTF-8: \xff")
    assert (await only(source)).content == ["after it was emptied", "last, and no UTF-8: �"]
    (harness.root / "app.log").rename(harness.root / "app.log.1")
    harness.write("app.log", "fresh\n")
    assert (await only(source)).content == ["fresh"]
    harness.write("app.log", b"one\nt\0o\n")
    assert (await only(source)).condition == "binary"
    harness.write("app.log", "x" * 5_000)
    assert (await only(source)).condition == "too_large"


@contextmanager
def _readable_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def _without_privileges() -> Iterator[None]:
    """The system's own user may read everything."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def _counted_opens(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Files that are opened from now on; the one way to see that something was not read."""
    opened: list[object] = []
    real = os.open

    def counted(path: object, *words: object, **named: object) -> int:
        opened.append(path)
        return real(path, *words, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", counted)
    return opened
