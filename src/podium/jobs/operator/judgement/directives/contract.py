"""Directive 2: the registry is law. What it does not have is not done, by no other way either."""

from __future__ import annotations

from podium.core.packs import Pack, PackTool, Skill
from podium.jobs.operator.judgement.directives.rules import Case, Rule, message_rule
from podium.jobs.operator.models import Directive, ToolIntent

_CONTRACT = Directive.CONTRACT


def _entry(pack: Pack, intent: ToolIntent) -> PackTool | Skill | None:
    return pack.tool(intent.tool) or pack.skill(intent.tool)


def _unknown_tool(case: Case) -> bool:
    return any(_entry(case.pack, intent) is None for intent in case.reading.calls)


def _unknown_field(case: Case) -> bool:
    return any(_invented(case.pack, intent) for intent in case.reading.calls)


def _invented(pack: Pack, intent: ToolIntent) -> bool:
    entry = _entry(pack, intent)
    properties = entry.input_schema.get("properties", {}) if entry else {}
    return any(name not in properties for name in intent.arguments)


RULES: tuple[Rule, ...] = (
    Rule(
        "unknown_tool", _CONTRACT, "it needs a tool that the registry does not have", _unknown_tool
    ),
    Rule(
        "unknown_field",
        _CONTRACT,
        "it needs a field that the tool in the registry does not have",
        _unknown_field,
    ),
    message_rule(
        "raw_sql",
        _CONTRACT,
        "the message holds SQL; only registered tools touch the database",
        "drop truncate alter delete_from insert_into update select -- 1=1 sql query",
        r"\b(?:drop|truncate|alter) (?:table|database|schema|index|view)s?\b(?! (?:off|at|near|by|over|round|saw|down))",
        r"\btruncate \w+ ?;|\bdelete from (?!my\b|the\b|our\b|his\b|her\b|their\b|this\b|it\b)\w+ ?(?:where\b|;|$)",
        r"\binsert into \w+ ?(?:\(|values\b|select\b)|\bupdate \w+ set \w+ ?=",
        r"\bselect (?:\*|[\w.]+(?: ?, ?[\w.]+){0,20}) from \w+ ?(?:where\b|limit\b|order by\b|;|--)|\bselect \* from\b",
        r"\bunion (?:all )?select\b|;\s?--|'\s?or\s?'?1'?\s?=\s?'?1",
        r"\b(?:run|execute|exec|fire)(?: \w+){0,3} (?:raw |some )?sql\b|\bsql (?:injection|statement)\b",
        quoted="counts",
    ),
    message_rule(
        "raw_commands",
        _CONTRACT,
        "the message holds commands for a shell; only registered tools act",
        "rm_- sudo curl wget chmod bash |sh | $( os.system subprocess eval exec __import__ <script powershell "
        "/etc/ ../ shell terminal python script :(){",
        r"\brm -[rf]{1,3}\b|(?:^|[;&|\n] ?|run |type )sudo \w|\bcurl (?:-\w|https?:|\S+ ?\|)|\bwget (?:-\w|https?:)",
        r"\bchmod (?:[0-7]{3}|[+-]\w)|\| ?(?:ba|z)?sh\b|\$\((?![\d,.]+\))[a-z/]",
        r"\bos\.system\b|\bsubprocess\.\w|\b(?:eval|exec) ?\(|__import__|<script\b|\bpowershell -|/etc/(?:passwd|shadow)|(?:\.\./){2}",
        r":\(\)\s?\{|\b(?:run|execute|open|start) (?:(?:a|an|this|the|some|following|these) )*(?:shell|bash|terminal|python|"
        r"powershell) (?:command|script|code|session)",
        quoted="counts",
    ),
)
