"""Searches that an agent makes itself are judged by the protected files that they would read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from podium.core.decisions import Call, Effect, GateContext
from podium.core.errors import BadArguments
from podium.core.model import Json
from podium.policy import PolicyLayer, compile_policy, default_policy
from podium.testing import FixedClock
from podium.tools import search_scope
from tests.unit.tools.toolbox_harness import RUN, Harness, make_harness

SECRET_FILE = {".env": "KEY=1", "src/app.py": "KEY", ".git/HEAD": ""}


def lay(harness: Harness, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        place = harness.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def search(harness: Harness, observed: bool = True, **arguments: Json) -> Call:
    return harness.toolbox.normalise(
        "search_text",
        {"pattern": "KEY", **arguments},
        run_id=RUN,
        step_key="work#0",
        index=0,
        observed=observed,
    )


def read_by(call: Call) -> set[str]:
    """Return the paths that it reads besides the folder that it names."""
    return {use.given for use in call.paths[1:]}


def judged(harness: Harness, call: Call) -> Effect:
    gate = compile_policy([PolicyLayer(origin="built-in", policy=default_policy())])
    context = GateContext(
        tool=harness.registry.spec("search_text"), root=str(harness.root), now=FixedClock().now()
    )
    return gate.decide(call, context).effect


@pytest.mark.parametrize(
    ("files", "arguments", "read"),
    [
        ({}, {}, {".env"}),
        ({}, {"path": "src"}, set()),
        ({}, {"glob": "*.py"}, set()),
        ({}, {"glob": "!.env*"}, set()),
        ({}, {"glob": "!*.py"}, {".env"}),
        ({".gitignore": ".env\n"}, {}, set()),
        ({".gitignore": "/.env\n"}, {}, set()),
        ({".gitignore": ".env/\n"}, {}, {".env"}),
        ({".gitignore": "src/\n"}, {}, {".env"}),
        # What a search names is read although git ignores it.
        ({".gitignore": ".env\n"}, {"glob": ".env"}, {".env"}),
        ({".gitignore": ".env\n"}, {"glob": "**/.ENV"}, {".env"}),
        ({".gitignore": ".env\n"}, {"glob": "*.{py,pyi}"}, set()),
        ({".gitignore": ".env\n"}, {"glob": "{x,.env}"}, {".env"}),
        ({".gitignore": ".env\n"}, {"glob": "*"}, {".env"}),
        ({".gitignore": ".env\n"}, {"glob": "*.py .env"}, {".env"}),
        ({".gitignore": ".env\n"}, {"glob": "*.py,.env"}, {".env"}),
        ({".gitignore": ".env\n"}, {"glob": "[.]env"}, {".env"}),
        ({}, {"glob": " "}, {".env"}),
        ({}, {"glob": ","}, {".env"}),
        ({}, {"glob": "!x .py"}, {".env"}),
        # What is not certain counts as read.
        ({".gitignore": ".env\n!.e*\n"}, {}, {".env"}),
        ({".gitignore": ".en[v]\n"}, {}, {".env"}),
        ({".gitignore": ".env\n", ".ignore": "!.env\n"}, {}, {".env"}),
        ({".gitignore": ".env\n", "sub/.git/HEAD": "", "sub/.env": ""}, {}, {"sub/.env"}),
        ({"sub/.gitignore": "*\n", "sub/.env": ""}, {"glob": "!x"}, {".env"}),
        (
            {".gitignore": "sub/**\n!sub/.env\n", "sub/.env": ""},
            {"path": "."},
            {".env", "sub/.env"},
        ),
        # Globs are meant from the workspace on.
        ({".gitignore": ".env\n", "sub/.env": ""}, {"path": "sub", "glob": "sub/*"}, {"sub/.env"}),
        # A folder that is named is searched although git ignores it.
        ({".gitignore": "sub/\n.git\n", "sub/.env": ""}, {"path": "sub"}, {"sub/.env"}),
        ({".gitignore": "sub/\n", "sub/.env": ""}, {"glob": "!.e?v"}, set()),
    ],
)
def test_a_search_reads_what_ripgrep_would(
    tmp_path: Path, files: dict[str, str], arguments: dict[str, Json], read: set[str]
) -> None:
    harness = make_harness(tmp_path)
    lay(harness, SECRET_FILE | files)
    assert read_by(search(harness, **arguments)) == read


def test_git_ignores_nothing_where_there_is_no_repository(tmp_path: Path) -> None:
    harness = make_harness(tmp_path)
    lay(harness, {".env": "", ".gitignore": ".env\n"})
    assert read_by(search(harness)) == {".env"}


def test_links_are_not_followed(tmp_path: Path) -> None:
    harness = make_harness(tmp_path)
    lay(harness, {"src/app.py": ""})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/.env").write_text("")
    (harness.root / "link").symlink_to(tmp_path / "elsewhere")
    (harness.root / "src/.env").symlink_to(tmp_path / "elsewhere/.env")
    assert read_by(search(harness)) == set()


def test_a_search_through_a_protected_file_is_asked_about_like_reading_it(tmp_path: Path) -> None:
    harness = make_harness(tmp_path)
    lay(harness, SECRET_FILE)
    assert judged(harness, search(harness)) is Effect.ASK
    assert judged(harness, search(harness, glob=".env")) is Effect.ASK
    assert judged(harness, search(harness, glob="*.py")) is Effect.ALLOW


def test_an_ordinary_search_is_not_asked_about(tmp_path: Path) -> None:
    harness = make_harness(tmp_path)
    lay(harness, SECRET_FILE | {".gitignore": ".env\n", ".env.example": "KEY="})
    assert judged(harness, search(harness)) is Effect.ALLOW


def test_podiums_own_search_leaves_protected_files_out_and_is_not_asked_about(
    tmp_path: Path,
) -> None:
    harness = make_harness(tmp_path)
    lay(harness, SECRET_FILE)
    assert judged(harness, search(harness, observed=False)) is Effect.ALLOW


def test_a_folder_with_more_files_than_can_be_looked_through_is_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_scope, "MAX_ENTRIES", 3)
    harness = make_harness(tmp_path)
    lay(harness, {f"{number}.txt": "" for number in range(4)})
    with pytest.raises(
        BadArguments, match="the folder has more than 3 files; search a smaller folder"
    ):
        search(harness)


def test_a_search_through_countless_protected_files_is_sent_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_scope, "MAX_REACHED", 1)
    harness = make_harness(tmp_path)
    lay(harness, {"a/.env": "", "b/.env": ""})
    with pytest.raises(BadArguments, match="protected files would be read; search another folder"):
        search(harness)


def test_what_is_approved_is_bound_to_the_files_that_the_search_reads(tmp_path: Path) -> None:
    harness = make_harness(tmp_path)
    lay(harness, SECRET_FILE)
    before = search(harness).digest(harness.registry.spec("search_text"))
    lay(harness, {"src/.env": ""})
    assert search(harness).digest(harness.registry.spec("search_text")) != before
