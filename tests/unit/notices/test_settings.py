"""Settings of notices and chats, and the reports of problems in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.config.configuration import project_steering
from podium.core.errors import ConfigInvalid
from tests.unit.notices.notices_harness import podium_in

TOKEN = "123:a-token-of-a-bot"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"notices: [{{to: 'tgram://{TOKEN}/5'}}]", "`to` must name a variable as secret://NAME"),
        (f"notices: [{{to: 'secret://{TOKEN}'}}]", "`to` must name a variable as secret://NAME"),
        (
            f"chat: {{plain: {{secret: '{TOKEN}'}}}}",
            "`secret` must name a variable as secret://NAME",
        ),
        ("notices: [{to: 'secret://A', what: [all]}]", "notices[0].what[0]"),
        ("notices: [{to: 'secret://A', min_tier: T9}]", "notices[0].min_tier"),
        ("notices: [{to: 'secret://A', link_hours: 1.0e+300}]", "notices[0].link_hours"),
        ("notices: [{to: 'secret://A', role: boss}]", "notices[0].role"),
        ("chat: {discord: {public_key: 12ab}}", "chat.discord.public_key"),
        ("chat: {irc: {}}", "chat.irc: unknown key 'irc'"),
        ("chat: {per_minute: 0}", "chat.per_minute"),
    ],
)
def test_a_fault_names_its_place_and_shows_no_secret(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigInvalid) as fault:
        podium_in(tmp_path, user=text, messages=[])
    assert words in str(fault.value)
    assert TOKEN not in str(fault.value)


def test_numbers_of_senders_need_no_quotes(tmp_path: Path) -> None:
    text = "chat: {plain: {secret: secret://A, senders: {1001: {person: ann}}}}"
    plain = podium_in(tmp_path, user=text, messages=[]).settings.chat.plain
    assert plain is not None
    assert list(plain.senders) == ["1001"]


def test_trust_is_required_for_a_projects_notices_and_whom_it_lets_in(tmp_path: Path) -> None:
    project = """
notices: [{to: 'secret://CHAT', role: approver}]
chat: {plain: {secret: 'secret://A', senders: {eve: {person: eve, roles: [approver]}}}}
"""
    podium = podium_in(tmp_path, project=project, messages=[])
    assert project_steering(podium.configuration) == {
        "notices": [{"to": "secret://CHAT", "role": "approver"}],
        "chat": {
            "plain": {
                "secret": "secret://A",
                "senders": {"eve": {"person": "eve", "roles": ["approver"]}},
            }
        },
    }
