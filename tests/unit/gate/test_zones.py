"""Places: forbidden, read-only, safe, and plain ones that rules speak of."""

from __future__ import annotations

import pytest

from podium.core.decisions import Access, Decision, Effect, PathUse, Tier
from podium.policy import RuleGate
from podium.policy.zones import PathGlobs
from tests.unit.gate.gate_harness import ROOT, command_call, decide, gate_of, path, run, tool_call

EVERYTHING = 'rules: [{name: all, tool: "*", decision: allow, up_to_tier: T4}]'


def touch(gate: RuleGate, used: PathUse) -> Decision:
    return decide(gate, tool_call("act", paths=(used,)))


@pytest.mark.parametrize(
    ("glob", "inside", "outside"),
    [
        ("config", ["config", "config/a", "config/a/b"], ["configs", "src/config", ""]),
        ("config/**", ["config", "config/a/b"], ["configs"]),
        ("./config/", ["config", "config/a"], ["src"]),
        ("**/.env", [".env", "a/.env", "a/b/.env", ".env/x"], [".envrc", "a.env"]),
        ("*.md", ["a.md", "a.md/x"], ["docs/a.md"]),
        ("src/*/gen", ["src/a/gen", "src/a/gen/x"], ["src/gen", "src/a/b/gen"]),
        ("a?c", ["abc"], ["ac", "a/c"]),
        ("**", ["", "a", "a/b"], []),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_globs_cover_what_they_name_and_all_below(
    glob: str, inside: list[str], outside: list[str]
) -> None:
    places = PathGlobs([glob])

    def covered(name: str) -> bool:
        return places.covers(f"{ROOT}/{name}".rstrip("/"), ROOT)

    assert [name for name in inside if not covered(name)] == []
    assert [name for name in outside if covered(name)] == []
    assert not places.covers("/elsewhere/config", ROOT)


def test_absolute_globs_hold_everywhere() -> None:
    places = PathGlobs(["/etc/**", f"{ROOT}/a"])

    assert places.covers("/etc/passwd", ROOT)
    assert places.covers(f"{ROOT}/a/b", ROOT)
    assert not places.covers("/etcetera", ROOT)


@pytest.mark.parametrize("access", list(Access))
def test_a_forbidden_zone_denies_every_access(access: Access) -> None:
    gate = gate_of(user=f"{EVERYTHING}\nzones: {{forbidden: [secrets/**]}}")
    decision = touch(gate, path("secrets/key", access))

    assert (decision.effect, decision.rule) == (Effect.DENY, "forbidden-zone:forbidden")


def test_forbidden_zone_is_found_through_links_parents_and_case_changes() -> None:
    gate = gate_of(user=f"{EVERYTHING}\nzones: {{forbidden: [secrets/**]}}")
    real = f"{ROOT}/secrets/key"

    for used in (
        path("notes/link", real=real),
        path("src/../secrets/key"),
        path("Secrets/KEY"),
        path(real),
        path("secrets/link", real=f"{ROOT}/src/a.py"),
    ):
        assert touch(gate, used).rule == "forbidden-zone:forbidden", used


def test_what_holds_a_forbidden_zone_cannot_be_removed_but_may_be_listed() -> None:
    gate = gate_of(user=f"{EVERYTHING}\nzones: {{forbidden: [conf/live/**]}}")

    assert touch(gate, path("conf", Access.DELETE)).rule == "forbidden-zone:forbidden"
    assert run(gate, "mv conf other").rule == "forbidden-zone:forbidden"
    assert run(gate, "rmdir conf").rule == "forbidden-zone:forbidden"
    assert touch(gate, path("conf", Access.READ)).effect is Effect.ALLOW
    assert touch(gate, path("conf/dev", Access.DELETE)).effect is Effect.ALLOW


def test_an_absolute_forbidden_zone_holds_outside_the_workspace() -> None:
    gate = gate_of(user=f"{EVERYTHING}\nzones: {{forbidden: [/etc/**]}}")

    assert touch(gate, path("/etc/passwd")).rule == "forbidden-zone:forbidden"
    assert touch(gate, path("/usr/share/doc")).effect is Effect.ALLOW


@pytest.mark.parametrize(
    "line",
    [
        "cat secrets/key",
        "cat ./src/../secrets/key",
        "cd secrets && cat key",
        "grep x --file=secrets/key",
        "grep x -fsecrets/key",
        "git show HEAD:secrets/key",
        "git add secrets/key",
        "git -C secrets log key",
        "tool --out=secrets/key",
        "tool key=secrets/key",
        "tool @secrets/key",
        f"cat {ROOT}/secrets/key",
        "bash -c 'cat secrets/key'",
    ],
)
def test_commands_that_name_a_forbidden_place_are_denied(line: str) -> None:
    gate = gate_of(user=f"{EVERYTHING}\nzones: {{forbidden: [secrets]}}")

    assert run(gate, line).rule == "forbidden-zone:forbidden"


def test_a_read_only_zone_may_be_read() -> None:
    gate = gate_of(user=f"{EVERYTHING}\nzones: {{agents: {{paths: [CLC], kind: read-only}}}}")

    assert touch(gate, path("CLC/a.md")).effect is Effect.ALLOW
    assert touch(gate, path("CLC/a.md", Access.WRITE)).rule == "read-only-zone:agents"
    assert run(gate, "cat CLC/a.md").effect is Effect.ALLOW
    assert run(gate, "touch CLC/a.md").rule == "read-only-zone:agents"
    assert run(gate, "some-editor CLC/a.md").rule == "read-only-zone:agents"


def test_writing_stops_at_the_edge_of_the_workspace() -> None:
    gate = gate_of(user=EVERYTHING)

    assert touch(gate, path("src/a.py", Access.WRITE)).effect is Effect.ALLOW
    for given in ("../a", "/etc/a", f"{ROOT}-other/a"):
        assert touch(gate, path(given, Access.WRITE)).rule == "outside-workspace", given
    link = path("link/a", Access.WRITE, real="/elsewhere/a")
    assert touch(gate, link).rule == "outside-workspace"


def test_without_a_workspace_nothing_may_be_written() -> None:
    call = tool_call("act", paths=(path("/a", Access.WRITE),))

    assert decide(gate_of(user=EVERYTHING), call, root="").rule == "outside-workspace"


def test_safe_zones_narrow_where_may_be_written() -> None:
    gate = gate_of(user=f"{EVERYTHING}\nzones: {{safe: [logs, state/**]}}")

    assert touch(gate, path("logs/a", Access.WRITE)).effect is Effect.ALLOW
    assert touch(gate, path("src/a", Access.WRITE)).rule == "outside-workspace"
    assert touch(gate, path("src/a", Access.READ)).effect is Effect.ALLOW
    assert run(gate, "touch src/a").rule == "outside-workspace"
    assert run(gate, "mkdir -m 700 logs/a").effect is Effect.ALLOW


def test_a_user_can_open_a_place_outside_and_a_project_cannot() -> None:
    opened = "zones: {safe: ['**', /data/out]}"
    used = path("/data/out/a", Access.WRITE)

    assert touch(gate_of(user=f"{EVERYTHING}\n{opened}"), used).effect is Effect.ALLOW
    assert touch(gate_of(user=EVERYTHING, project=opened), used).rule == "outside-workspace"
    narrowed = gate_of(user=f"{EVERYTHING}\n{opened}", project="zones: {safe: [src]}")
    assert touch(narrowed, used).rule == "outside-workspace"
    assert touch(narrowed, path("src/a", Access.WRITE)).effect is Effect.ALLOW


def test_rules_speak_of_plain_zones() -> None:
    gate = gate_of(
        user="""
        zones: {docs: [docs/**], protected: [config/**]}
        rules:
          - {name: docs-only, zone: docs, tool: act, decision: allow}
          - {name: careful, zone: protected, access: [write, delete], decision: ask}
        """
    )

    assert touch(gate, path("docs/a.md", Access.WRITE)).rule == "docs-only"
    assert touch(gate, path("config/a", Access.WRITE)).rule == "careful"
    assert touch(gate, path("config/a", Access.READ)).rule == "no-rule"
    both = tool_call("act", paths=(path("docs/a"), path("src/a")))
    assert decide(gate, both).rule == "no-rule"


def test_a_command_is_never_allowed_by_the_places_it_names() -> None:
    gate = gate_of(
        user="""
        zones: {docs: [docs/**]}
        rules: [{name: docs-only, zone: docs, decision: allow}]
        """
    )

    assert run(gate, "some-editor docs/a.md").rule == "no-rule"
    inside = command_call("some-editor a.md", paths=(path("docs", argument="cwd"),))
    assert decide(gate, inside).rule == "no-rule"


def test_a_question_about_a_zone_holds_for_commands_that_name_it() -> None:
    gate = gate_of(
        user="""
        zones: {protected: [config/**]}
        rules:
          - {name: careful, zone: protected, access: write, decision: ask}
          - {name: all, command: "*", decision: allow}
        """
    )

    assert run(gate, "some-editor config/a").rule == "careful"
    assert run(gate, "touch config/a").rule == "careful"
    assert run(gate, "cat config/a").rule == "all"
    assert run(gate, "some-editor src/a").rule == "all"


def test_a_project_cannot_widen_a_zone_that_a_users_rule_speaks_of() -> None:
    gate = gate_of(
        user="""
        zones: {docs: [docs/**]}
        rules: [{name: docs-only, zone: docs, tool: act, decision: allow}]
        """,
        project="zones: {docs: ['**']}",
    )

    assert touch(gate, path("src/a")).rule == "no-rule"


def test_zones_raise_the_tier_of_reads_and_writes() -> None:
    gate = gate_of(
        user="""
        rules: [{name: all, tool: act, decision: allow}]
        zones: {vault: {paths: [vault], read_tier: T2, write_tier: T4}}
        """
    )

    assert touch(gate, path("vault/a")).tier is Tier.T2
    assert touch(gate, path("vault/a", Access.WRITE)).tier is Tier.T4
    assert touch(gate, path("src/a", Access.WRITE)).tier is Tier.T0


def test_walking_tools_can_ask_which_paths_are_forbidden() -> None:
    gate = gate_of(user="zones: {forbidden: [secrets]}")

    assert gate.passed_over(f"{ROOT}/secrets/a", ROOT)
    assert not gate.passed_over(f"{ROOT}/src/a", ROOT)


def test_closed_zones_with_plain_names_are_listed_so_that_the_kernel_can_hold_them() -> None:
    gate = gate_of(
        project="""
        zones:
          forbidden: ["secrets/**", "**/*.pem", "./infra/", "/etc"]
          generated: {paths: ["gen", "gen/*"], kind: read-only}
          notes: {paths: ["notes"], write_tier: T2}
        """
    )
    assert set(gate.closed_paths) >= {"secrets", "infra", "gen"}
    assert not {"notes", "/etc"} & set(gate.closed_paths)
    assert not any("*" in path for path in gate.closed_paths)


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("python3 -m unittest discover -s tests", "allow"),
        ("pytest -q tests/test_a.py", "allow"),
        ("pytest tests/*.py 2>&1 | tail -5", "allow"),
        ("some-editor tests/test_a.py", "allow"),
        ("echo x > tests/test_a.py", "deny"),
        ("rm -rf tests", "deny"),
        ("mv tests elsewhere", "deny"),
        ("pytest -c setup.cfg", "deny"),
    ],
)
def test_commands_may_name_what_the_kernel_keeps_from_being_written(
    command: str, effect: str
) -> None:
    zones = "zones: {proof: {paths: [tests, '*.cfg'], kind: read-only}}"
    gate = gate_of(user=f"{EVERYTHING}\n{zones}")
    found = run(gate, command, confined=True, holds_zones=True)
    assert (found.effect, found.rule.startswith("read-only-zone")) == (effect, effect == "deny")
    assert run(gate, command, confined=True).effect == "deny", "nothing else holds it there"
