"""Ways around the shipped policy: none of them passes without a person."""

from __future__ import annotations

import pytest

from podium.core.decisions import Access, Effect, Tier
from tests.unit.gate.gate_harness import (
    ROOT,
    command_call,
    context_for,
    gate_of,
    path,
    run,
    spec,
    tool_call,
)

GATE = gate_of(default=True)

WRITERS = """
cp --target-dir=.git/hooks pre-commit
cp --target-directory=.git/hooks pre-commit
cp -t .git/hooks x
cp -vt .git/hooks x
cp -vt.git/hooks x
cp -rt . x
cp -al a b
cp --link a b
cp -s a b
cp -b a b
cp a
install a b
install -CDt .git/hooks x
install -s --strip-program=./evil a b
install -d .git/hooks/x y
ln a b
ln -s a b
ln -sft .git/hooks x
mv --target-dir=.git/hooks x
mv -t .git/hooks x
mv -b a b
mkdir -m 4777 a
touch --reference .git/x a
touch -r .env a
chmod --reference=a .git/hooks/x
chmod --ref=a b
chmod u+s a
chmod 4755 a
chown eve a
chgrp eve a
tee --output-error=warn a
""".strip().splitlines()

LANDINGS = """
cp d/podium.yaml .
cp d/podium.yaml ./
cp d/podium.yaml src/..
cp -t . x/podium.yaml
cp a d/podium.yaml .
mv x/podium.yaml .
mv x/podium.yaml a .
git mv x/podium.yaml .
git mv a x/podium.yaml ./
git mv x/.github .
cp -r evil/.github .
cp -r evil .
cp -r x/. .
cp -a x/. .
cp -r x/.. .
cp -r x .github
cp -r x/ .github/
cp -r . copy
mv x .github
mv x .github/
mv evil/.github .
mv .github x
cp x .husky/pre-commit
cp pre-commit .githooks
touch .pre-commit-config.yaml
tee .envrc
mkdir .vscode
mv a packages/b/.idea/c
touch PODIUM.YAML
cp x .GitHub/workflows/a.yml
cp -r x .GITHUB
""".strip().splitlines()

READERS = """
date -f .env
date -r .env
date -s tomorrow
date --file=.env
date +%s -f .env
grep -ne. .env
grep -rne . .env
grep -nf.env x
grep --regex=. .env
grep --reg . .env
grep -c . .env
file -bf.env
file -bf .env
rg -ne. .env
rg --ignore-file .env x
git grep -hf/etc/shadow
git grep -hf/etc/shadow x
jq -f a.jq b.json
jq -nf a.jq
jq --from-file a.jq b.json
jq -L . x b.json
jq 'import "a" as a; .' b.json
jq -n 'include "a"; x'
jq -n '$ENV'
jq -n env.HOME
cat .ENV
cat .env.local
cat config/.env.production
cat server.pem
cat keys/id_rsa
cat keys/id_rsa.bak
cat id_ed25519
cat .npmrc
cat .pypirc
cat home/.netrc
""".strip().splitlines()

GIT = """
git -C sub status
git -C vendor/lib log
cd sub && git status
cd sub && git add -A
git commit --amend --no-edit
git commit --amen -m x
git commit --author='Eve <e@x>' -m x
git commit -S -m x
git commit -Skey -m x
git commit --gpg-sign -m x
git commit --date=yesterday -m x
git commit -am x --reset-author
git commit -e
git rm '*'
git rm '*.py'
git rm .
git rm ./
git rm ':/'
git rm src/..
git rm -r src
git rm --pathspec-from-file=x
git add -f .
git add -e
git mv -f a b
""".strip().splitlines()

CHECKS = """
mypy @opts
pytest @f
tsc @f
pytest tests @more
python -m pytest @f
ruff check --config 'cache-dir="/tmp/x"'
ruff check --config 'cache-dir="\\u002ftmp/x"'
ruff check --config "cache-dir='/tmp/x'"
pytest '--junitxml=$HOME/x.xml'
pytest '--junitxml=${HOME}/x.xml'
pytest '--junitxml=~/x.xml'
tsc --outDir '$HOME'
tsc --outDir '~'
pytest -qc/tmp/evil.ini
pytest -o a=b=c=/tmp/x
pytest -o 'addopts=--rootdir /tmp'
pytest -o addopts=-qc/tmp/evil.ini
pytest -o addopts=--basetemp=src
mypy --install-types --non-interactive src
mypy --install-types
mypy --non-interactive src
mypy --ins src
go build -ldflags '-extld=./evil' .
go build --ldflags=-extld=./evil .
go test -ldflags=-extld=./evil ./...
go test -gcflags=all=-x ./...
cargo --config 'build.rustc="./evil"' test
cargo test --config build.rustc=./evil
npm test --script-shell ./evil
npm test --script-shell=./evil
""".strip().splitlines()

WRAPPED = """
nohup CI=b/viaassign ls
timeout 5 CI=b/viaassign ls
command CI=b/viaassign ls
nice CI=b/viaassign ls
CI+=b/viaassign ls
bash -c 'CI+=b/viaassign ls'
""".strip().splitlines()


@pytest.mark.parametrize("line", [*WRITERS, *LANDINGS, *READERS, *GIT, *CHECKS, *WRAPPED])
def test_a_known_way_around_is_never_allowed_by_itself(line: str) -> None:
    decision = run(GATE, line)

    assert decision.effect is not Effect.ALLOW, decision


@pytest.mark.parametrize(
    "line",
    """
date
date +%F
cp -a templates site
cp -p -v a.py b.py
cp -- a.py src
mv -n a.py src/
mv a.py b.py src
mv a.py .
mv src lib
cp a.py .
mkdir -p -v a/b
chmod 644 a.py
chmod u+rwx,g-w run.sh
tee -a notes.txt
touch a b
git commit -am "Add /api to the parser" -q
git commit -F message.txt
git commit --message='it costs $5'
git add -u src
git rm old.py
git rm --cached old.py
git mv a.py src
git -C . status
git log --format='%h %s (%an)' --since='2 weeks ago'
git grep -n api src
grep -rniE "/api/(users|groups)" src
grep -A 3 TODO src/app.py
jq -r '.version' package.json
jq '.a | length' a.json
go test -run '^TestParse$' -count=1 ./...
go build -o bin/app ./cmd/app
go test -coverprofile=c.out ./...
pytest -k 'a or b' --junitxml=out/x.xml
pytest -o cache_dir=.cache -p no:cacheprovider
eslint --ext .js,.ts src
CI=a/b pytest
env CI=a/b pytest
""".strip().splitlines(),
)
def test_ordinary_forms_of_the_same_programs_stay_allowed(line: str) -> None:
    decision = run(GATE, line)

    assert decision.effect is Effect.ALLOW, decision


def test_a_writer_whose_options_are_not_known_is_still_a_write_for_rules_that_forbid() -> None:
    gate = gate_of(default=True, user="rules: [{name: no-writes, kind: write, decision: deny}]")

    for line in ("cp a b", "cp -vt src a", "ln -s a b", "install a b"):
        assert run(gate, line).rule == "no-writes", line


def test_writers_in_unknown_forms_are_held_to_the_workspace() -> None:
    for line in ("cp -vt /etc a", "mv --target-dir=/etc a", "install -D a /etc/b", "ln a /etc/b"):
        assert run(GATE, line).rule == "outside-workspace", line


def test_a_link_out_of_a_deep_folder_is_not_made_without_a_person() -> None:
    call = command_call("ln -s ../../.. ../../../up", paths=(path("a/b/c", argument="cwd"),))

    assert GATE.decide(call, context_for()).effect is Effect.ASK


def test_git_in_a_folder_of_its_own_is_asked_wherever_the_folder_comes_from() -> None:
    call = command_call("git status", paths=(path("sub", argument="cwd"),))
    at_root = command_call("git status", paths=(path(".", argument="cwd"),))

    assert GATE.decide(call, context_for()).rule == "tier:T2"
    assert GATE.decide(at_root, context_for()).effect is Effect.ALLOW
    assert run(GATE, f"git -C {ROOT} status").effect is Effect.ALLOW


def test_a_recursive_copy_above_a_zone_is_a_question_with_its_reason() -> None:
    decision = run(GATE, "cp -r x .github")

    assert (decision.effect, decision.rule) == (Effect.ASK, "tier:T2")
    assert "'automation'" in decision.reason


@pytest.mark.parametrize("words", [["CI=b/viaassign", "ls"], ["CI=x", "ls"], ["CI=1", "A=2"]])
def test_in_a_list_of_words_the_first_one_is_the_program_whatever_it_looks_like(
    words: list[str],
) -> None:
    call = tool_call("run_command", commands=(tuple(words),), arguments={"command": words})

    assert GATE.decide(call, context_for()).rule == "undecidable-command"


def test_an_assignment_with_a_path_is_refused_when_nobody_says_it_came_from_a_line() -> None:
    call = tool_call("run_command", commands=(("CI=b/viaassign", "ls"),))

    assert GATE.decide(call, context_for()).rule == "undecidable-command"


def test_a_call_with_too_many_words_is_undecidable() -> None:
    for words in (("ls", *["a"] * 3000), ("ls", "a" * 40_000)):
        call = tool_call("run_command", commands=(words,), arguments={"command": list(words)})
        assert GATE.decide(call, context_for()).rule == "undecidable-command"


def test_a_call_whose_words_may_name_too_many_paths_is_undecidable() -> None:
    words = ("grep", *["-" + "n" * 14] * 1000)
    call = tool_call("run_command", commands=(words,), arguments={"command": list(words)})
    plain = ("cat", *(f"src/{number}.py" for number in range(1900)))
    many = tool_call("run_command", commands=(plain,), arguments={"command": list(plain)})

    assert GATE.decide(call, context_for()).rule == "undecidable-command"
    assert GATE.decide(many, context_for()).effect is Effect.ALLOW


def test_option_of_very_many_characters_is_undecidable() -> None:
    assert run(GATE, f"grep -{'n' * 40}fsecrets x").rule == "undecidable-command"


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a", "content": "key: secret://API_KEY\n"},
        {"path": "a", "options": [{"deep": "x secret://API_KEY y"}]},
    ],
)
def test_call_given_a_secret_needs_a_person_who_is_shown_which(
    arguments: dict[str, object],
) -> None:
    call = tool_call("write_file", paths=(path("a", Access.WRITE),), arguments=arguments)
    decision = GATE.decide(call, context_for(spec("write_file", Tier.T1)))

    assert (decision.effect, decision.tier) == (Effect.ASK, Tier.T2)
    assert "API_KEY" in decision.reason


def test_a_variable_with_a_secret_is_never_harmless() -> None:
    call = tool_call(
        "run_command",
        commands=(("pytest",),),
        arguments={"command": "pytest", "env": {"CI": "secret://API_KEY"}},
    )
    decision = GATE.decide(call, context_for())

    assert (decision.effect, decision.tier) == (Effect.ASK, Tier.T2)
    assert run(GATE, "CI=secret://API_KEY pytest").effect is Effect.ASK
