"""Settings of several sources: what wins, what only tightens, and where each value came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.config.configuration import Configuration, load_configuration
from podium.config.trust import TrustBook
from podium.core.decisions import Budget
from podium.core.errors import BadInput, ConfigInvalid, NotPossibleNow


class Place:
    """A project and a user's home in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.home = folder / "home"
        self.project.mkdir()
        self.home.mkdir()
        self.environ = {"PODIUM_HOME": str(self.home), "HOME": str(folder)}

    def project_says(self, text: str) -> None:
        (self.project / "podium.yaml").write_text(text)

    def user_says(self, text: str) -> None:
        (self.home / "config.yaml").write_text(text)

    def load(self, environ: dict[str, str] | None = None, **flags: object) -> Configuration:
        both = {**self.environ, **(environ or {})}
        return load_configuration(both, project=self.project, flags=flags)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_flag_overrides_variable_overrides_project_overrides_user(place: Place) -> None:
    place.user_says("mode: autonomous\nuser: ann\nflows: {pipeline: {tests: slow}}\n")
    assert place.load().origin_of("mode").endswith("config.yaml:1")
    place.project_says("mode: supervised\nflows: {pipeline: {tests: fast}}\n")
    configuration = place.load()
    assert configuration.settings.flows == {"pipeline": {"tests": "fast"}}
    assert configuration.origin_of("flows.pipeline.tests").endswith("podium.yaml:2")
    spoken = place.load({"PODIUM_MODE": "dry-run"})
    assert (spoken.settings.mode, spoken.origin_of("mode")) == ("dry-run", "PODIUM_MODE")
    flagged = place.load({"PODIUM_MODE": "dry-run"}, mode="sensing")
    assert (flagged.settings.mode, flagged.origin_of("mode")) == ("sensing", "--mode")
    assert configuration.settings.user == "ann"


def test_without_any_file_the_defaults_hold(place: Place) -> None:
    configuration = place.load()
    assert configuration.settings.mode == "supervised"
    assert configuration.settings.user
    assert {origin for _, _, origin in configuration.listing()} == {"default"}


def test_of_two_files_the_stricter_mode_holds(place: Place) -> None:
    place.user_says("mode: dry-run\n")
    place.project_says("mode: autonomous\n")
    assert place.load().settings.mode == "dry-run"


def test_a_project_tightens_what_guards_and_never_loosens_it(place: Place) -> None:
    place.user_says(
        "budgets: {run: {usd: 5.0}}\n"
        "sandbox: {network: listed, hosts: [a.example, b.example]}\n"
        "environment: {inherit: [JAVA_HOME, LICENCE], deny: [TERM]}\n"
        "approvers: {owner: [ann, bob]}\n"
        "redact: ['one']\n"
    )
    place.project_says(
        "budgets: {run: {usd: 9.0, tokens: 100}, day: {usd: 1.0}}\n"
        "sandbox: {kind: kernel, network: open}\n"
        "environment: {inherit: [JAVA_HOME, AWS_SECRET], deny: [SHELL]}\n"
        "approvers: {owner: [bob, mallory], ops: [eve]}\n"
        "redact: ['two']\n"
    )
    settings = place.load().settings
    assert settings.budgets.budgets() == (
        Budget(scope="run", usd=5.0, tokens=100),
        Budget(scope="day", usd=1.0),
    )
    assert settings.sandbox.kind == "kernel"
    assert settings.sandbox.network == "listed"
    assert settings.sandbox.hosts == ("a.example", "b.example")
    assert settings.environment.names == ("JAVA_HOME",)
    assert settings.environment.deny == ("TERM", "SHELL")
    assert settings.approvers == {"owner": ("bob",), "ops": ("eve",)}
    assert settings.redact == ("one", "two")


def test_runs_and_trees_have_limits_where_nobody_set_any(place: Place) -> None:
    settings = place.load().settings
    assert settings.budgets.budgets() == (Budget(scope="run", tokens=10_000_000, usd=25.0),)
    assert (settings.sandbox.processes, settings.sandbox.file_mb) == (1024, 4096)
    assert settings.sandbox.memory_mb
    assert settings.sandbox.temporary_mb


@pytest.mark.parametrize("off", ["0", "null"])
def test_your_own_file_switches_limits_off_and_a_project_only_lowers_them(
    place: Place, off: str
) -> None:
    limits = f"sandbox: {{processes: {off}, memory_mb: {off}}}\nbudgets: {{run: {{usd: {off}}}}}\n"
    place.project_says(limits)
    settings = place.load().settings
    assert (settings.sandbox.processes, settings.budgets.run.usd) == (1024, 25.0)
    place.user_says(limits)
    settings = place.load().settings
    assert (settings.sandbox.processes, settings.sandbox.memory_mb) == (0, 0)
    assert settings.budgets.budgets() == (Budget(scope="run", tokens=10_000_000),)
    place.project_says("sandbox: {processes: 5000}\nbudgets: {run: {usd: 3.0}}\n")
    settings = place.load().settings
    assert (settings.sandbox.processes, settings.budgets.run.usd) == (5000, 3.0)
    place.user_says("")
    assert place.load().settings.sandbox.processes == 1024, "a project does not raise it"


def test_a_project_lowers_the_default_budget_and_only_your_own_file_raises_it(place: Place) -> None:
    place.project_says("budgets: {run: {tokens: 50000000, usd: 3.0}, day: {usd: 90.0}}\n")
    loaded = place.load()
    run = loaded.settings.budgets.run
    assert (run.tokens, run.usd) == (10_000_000, 3.0)
    assert loaded.unheeded_limits() == ["`budgets: run: tokens: 50000000`"]
    place.user_says("budgets: {run: {tokens: 70000000}}\n")
    loaded = place.load()
    assert loaded.settings.budgets.run.tokens == 50_000_000
    assert loaded.unheeded_limits() == []


@pytest.mark.parametrize("key", ["file_mb", "memory_mb", "temporary_mb", "processes"])
def test_a_limit_that_no_machine_can_hold_is_refused_with_what_to_do(
    place: Place, key: str
) -> None:
    place.user_says(f"sandbox: {{{key}: 99999999999999999}}\n")
    with pytest.raises(ConfigInvalid) as refused:
        place.load()
    assert f"sandbox.{key}" in str(refused.value)
    assert "0 means no limit" in str(refused.value)


def test_a_project_alone_hands_none_of_your_variables_on(place: Place) -> None:
    place.project_says("environment: {inherit: [AWS_SECRET]}\n")
    assert place.load().settings.environment.names == ()


def test_what_several_files_had_a_say_in_names_them_all(place: Place) -> None:
    place.user_says("redact: [one]\n")
    place.project_says("\nredact: [two]\n")
    origin = place.load().origin_of("redact")
    assert "config.yaml:1" in origin
    assert "podium.yaml:2" in origin


def test_all_faults_of_a_file_are_reported_at_once_with_line_and_key(place: Place) -> None:
    place.project_says(
        "mode: reckless\n"
        "agnets: {}\n"
        "agents:\n"
        "  dev:\n"
        "    kind: gemini\n"
        "    comand: [x]\n"
        "queues:\n"
        "  fast: {concurrency: 0}\n"
        "budgets: {run: {usd: '5'}}\n"
        "redact: ['(']\n"
    )
    with pytest.raises(ConfigInvalid) as caught:
        place.load()
    problems = {(fault.line, fault.key) for fault in caught.value.problems}
    assert problems == {
        (1, "mode"),
        (2, "agnets"),
        (6, "agents.dev.comand"),
        (8, "queues.fast.concurrency"),
        (9, "budgets.run.usd"),
        (10, "redact[0]"),
    }
    assert "known keys: mode, user, agents" in str(caught.value)


def test_a_missing_key_is_placed_at_its_entry(place: Place) -> None:
    place.project_says("agents:\n  dev:\n    model: x\n")
    with pytest.raises(ConfigInvalid, match=r"podium\.yaml:2:3: agents\.dev\.kind: is missing"):
        place.load()


def test_values_of_an_agents_environment_are_never_shown_in_faults(place: Place) -> None:
    place.project_says("agents: {dev: {kind: x, env: {KEY: 123456789}}}\n")
    with pytest.raises(ConfigInvalid) as caught:
        place.load()
    assert "agents.dev.env.KEY" in str(caught.value)
    assert "123456789" not in str(caught.value)


def test_a_role_needs_an_agent_that_is_somewhere(place: Place) -> None:
    place.project_says("roles:\n  dev:\n    agent: gemini\n")
    with pytest.raises(ConfigInvalid, match=r"podium\.yaml:3:5: roles\.dev\.agent: unknown"):
        place.load()
    place.user_says("agents: {gemini: {kind: gemini}}\n")
    assert place.load().settings.roles["dev"].agent == "gemini"


def test_a_project_cannot_say_who_you_are(place: Place) -> None:
    place.project_says("user: boss\n")
    with pytest.raises(ConfigInvalid, match="a project cannot set this"):
        place.load()


def test_a_wrong_variable_is_a_fault_that_names_it(place: Place) -> None:
    with pytest.raises(ConfigInvalid, match="environment: mode"):
        place.load({"PODIUM_MODE": "reckless"})


def test_a_database_url_of_another_kind_is_refused_rather_than_ignored(place: Place) -> None:
    with pytest.raises(BadInput, match=r"PODIUM_DATABASE_URL starts with 'mysql'; .*postgresql://"):
        place.load({"PODIUM_DATABASE_URL": "mysql://db:hidden@host/name"})


def test_a_projects_command_runs_only_once_it_is_trusted_as_it_is(place: Place) -> None:
    place.project_says("agents: {dev: {kind: gemini, command: [./tool]}}\n")
    configuration = place.load()
    with pytest.raises(NotPossibleNow, match="podium trust"):
        configuration.command_of("dev")
    book = TrustBook(configuration.folders.user_state)
    book.trust(configuration.folders.project_file, configuration.project_digest)
    assert place.load().command_of("dev") == ("./tool",)
    place.project_says("agents: {dev: {kind: gemini, command: [./other]}}\n")
    with pytest.raises(NotPossibleNow, match="podium trust"):
        place.load().command_of("dev")


def test_trust_is_for_the_content_that_was_read_not_for_what_came_after(place: Place) -> None:
    place.project_says("agents: {dev: {kind: gemini, command: [./tool]}}\n")
    shown = place.load()
    place.project_says("agents: {dev: {kind: gemini, command: [./swapped]}}\n")
    book = TrustBook(shown.folders.user_state)
    book.trust(shown.folders.project_file, shown.project_digest)
    with pytest.raises(NotPossibleNow):
        place.load().command_of("dev")


def test_a_command_of_your_own_file_needs_no_trust(place: Place) -> None:
    place.user_says("agents: {dev: {kind: gemini, command: [my-gemini]}}\n")
    assert place.load().command_of("dev") == ("my-gemini",)


def test_a_projects_variables_for_an_agent_are_used_only_once_they_are_trusted(
    place: Place,
) -> None:
    place.project_says("agents: {dev: {kind: gemini, env: {LD_PRELOAD: ./evil.so}}}\n")
    configuration = place.load()
    assert configuration.project_variables() == {"dev": ("LD_PRELOAD=./evil.so",)}
    with pytest.raises(NotPossibleNow, match=r"variables.*podium trust"):
        configuration.env_of("dev")
    book = TrustBook(configuration.folders.user_state)
    book.trust(configuration.folders.project_file, configuration.project_digest)
    assert place.load().env_of("dev") == {"LD_PRELOAD": "./evil.so"}


def test_variables_of_your_own_file_need_no_trust(place: Place) -> None:
    place.user_says("agents: {dev: {kind: gemini, env: {LANG: C}}}\n")
    assert place.load().env_of("dev") == {"LANG": "C"}


def test_trust_can_be_taken_back(place: Place) -> None:
    place.project_says("agents: {dev: {kind: gemini, command: [./tool]}}\n")
    configuration = place.load()
    file = configuration.folders.project_file
    book = TrustBook(configuration.folders.user_state)
    book.trust(file, configuration.project_digest)
    assert book.forget(file)
    assert not configuration.project_is_trusted()
    assert not book.forget(file)


def test_an_agents_entry_comes_whole_from_one_file(place: Place) -> None:
    place.user_says("agents: {dev: {kind: gemini, env: {TOKEN: 'secret://T'}, command: [mine]}}\n")
    place.project_says("agents: {dev: {kind: codex}}\n")
    configuration = place.load()
    assert configuration.settings.agents["dev"].env == {}
    assert configuration.command_of("dev") == ()
    assert configuration.origin_of("agents.dev.kind").endswith("podium.yaml:1")
