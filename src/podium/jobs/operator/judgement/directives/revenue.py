"""Directive 4: lead, inspection, quote, job, payment, review. No stage is skipped, nothing is given away."""

from __future__ import annotations

import re

from podium.jobs.operator.judgement.directives.rules import Case, Rule, compiled, message_rule
from podium.jobs.operator.models import Directive

_REVENUE = Directive.REVENUE
_STAGE = r"(?:quotes?|quoting|invoices?|invoicing|payments?|deposit|inspections?|accepted quote|acceptance|billing)"
_MESSAGE = r"(?! (?:reminder|email|sms|text|copy|number|list|page|note|follow|template|call|header|section|report|screen))"
_A_DAY = r"(?! (?:on|for|at|this|today|tomorrow|next|until|tonight|in|of|by)\b)(?! (?:mon|tues|wednes|thurs|fri|satur|sun)day)"
_MOSTLY = 90
"""A discount from so many per cent on gives the work away."""
_DISCOUNT = (
    r"(\d{1,3})(?:\.\d+)? ?(?:%|per ?cent|percent) (?:discount|off|reduction)|"
    r"\b(?:discount|reduce|knock|take|drop|cut)\b[^.;\n]{0,40}?(\d{1,3})(?:\.\d+)? ?(?:%|per ?cent|percent)"
)


def _nearly_free(case: Case) -> bool:
    """A discount that leaves next to nothing."""
    return any(
        int(next(filter(None, match.groups()))) >= _MOSTLY and not _only_reported(case, match)
        for form in case.forms
        if "%" in form or "cent" in form
        for match in compiled(_DISCOUNT).finditer(form)
    )


def _only_reported(case: Case, match: re.Match[str]) -> bool:
    return case.is_content(match, inside_only=True)


def _negative_amount(case: Case) -> bool:
    for intent in case.reading.calls:
        tool = case.pack.tool(intent.tool)
        for name, value in intent.arguments.items() if tool else ():
            schema = tool.properties.get(name, {}) if tool else {}
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if schema.get("x-kind") == "money" and number and value < 0:
                return True
    return False


RULES: tuple[Rule, ...] = (
    message_rule(
        "skipping_stage",
        _REVENUE,
        "a stage from lead to payment would be skipped",
        "quot invoic payment deposit inspection accept billing stage straight",
        r"\b(?:create|start|open|book|make|schedule|begin|set up|kick off|do|complete|finish|close)(?: [\w'#-]+){0,4}? (?:jobs?|work|roof)\b"
        rf"[^.;?!\n]{{0,40}}\b(?:without|with no|bypassing|skipping)(?: (?:an?|any|the|first|accepted|signed|finali[sz]ed|sending|making|creating|"
        rf"having|doing|waiting for)){{0,4}} {_STAGE}\b",
        r"\b(?:create|start|begin|schedule)(?: [\w'#-]+){0,4}? jobs?\b[^.;?!\n]{0,30}\b(?:before|although|even though|even if)\b[^.;?!\n]{0,30}\bquote"
        r"(?: is| was| has been| isn't| is not| wasn't| hasn't been| being)(?: not)? (?:accepted|finali[sz]ed|approved|signed|sent)\b",
        rf"\b(?:skip|bypass|forget about|leave out|omit|jump over) (?:(?:the|an?|any|this|that|creating|sending|making|doing|whole|entire) ){{0,3}}"
        rf"(?:quotes?|quoting|invoices?|invoicing|payments?|deposit|billing|inspection (?:stage|step))\b{_MESSAGE}{_A_DAY}",
        r"\b(?:create|start|begin|do|book)\b[^.;\n]{0,20}\bjob\b[^.;\n]{0,15}\b(?:quote|inspect) (?:it |them |him |her )?(?:later|afterwards)\b",
        rf"\bskip (?:the |any |an? )?inspections?\b{_MESSAGE}{_A_DAY}",
        r"\b(?:skip|bypass|jump) (?:(?:the|a|any|all|these|those|some|couple|of|few|\w+) ){0,3}stages?\b",
        r"\b(?:go|jump|move|skip|take (?:it|him|her|them))(?: \w+){0,3} straight (?:from \w+ )?to (?:the )?(?:job|invoice|invoicing|won|payment)\b"
        r"(?! (?:site|at|on|in|list|page|\w+ (?:street|st|rd|road)))",
    ),
    message_rule(
        "unpaid_as_paid",
        _REVENUE,
        "a payment would be recorded that nobody made",
        "paid payment",
        r"\b(?:mark|set|record|flag|close|show|put)\b[^.;\n]{0,60}\bpaid\b[^.;\n]{0,30}\b(?:without|before|despite|with no)(?: (?:an?|any|the|actual|"
        r"real|receiving|getting|having|taking)){0,4} (?:payments?|money|being paid|paying|(?:they|he|she|we)(?:'ve|'s| have| has)? (?:paid|pay|pays|"
        r"got|received))\b",
        r"\b(?:mark|set|record|flag|close|show|put)\b[^.;\n]{0,60}\bpaid\b[^.;\n]{0,20}\b(?:although|even though|even if|but|tho|though)\b[^.;\n]{0,20}"
        r"\b(?:haven't|hasn't|have not|has not|didn't|did not|never|isn't|not|no)\b[^.;\n]{0,15}\b(?:paid|pay|payment|money|received|come)\b",
        r"\b(?:mark|set|record|flag|close|show|put)\b[^.;\n]{0,60}\bpaid ?[,;-]? ?\w+ (?:haven't|hasn't|have not|has not|didn't|did not|never) "
        r"(?:actually |really )?(?:paid|pay)\b",
        r"\brecord (?:a |an )?(?:\w+ )?payments?\b[^.;\n]{0,50}\b(?:that (?:never|didn't|hasn't|wasn't)|(?:he|she|they|we) (?:never|didn't|haven't|hasn't))\b",
    ),
    Rule(
        "nearly_free",
        _REVENUE,
        "the work would be given away",
        _nearly_free,
    ),
    message_rule(
        "giving_away",
        _REVENUE,
        "the work would be given away",
        "free nothing no_cost no_charge zero $0 $_0 waive",
        r"\b(?:do|give|make|finish|complete|install|replace|re-?roof|finali[sz]e|set|hand over)\b(?:(?!\bwarranty\b)[^.;\n]){0,40}\b(?:job|roof|work|repairs?|"
        r"quotes?|whole thing|invoice|re-?roof)\b(?:(?!\bwarranty\b)[^.;\n]){0,25}\b(?:for free|free of charge|for nothing|at no (?:cost|charge)|to zero|to nothing)\b"
        r"(?![^.;\n]{0,30}\bwarranty\b)",
        r"\b(?:quote|invoice|charge|bill|price)(?: [\w'#-]+){0,4} (?:(?:at|for|to) )?(?:\$ ?0(?:\.0+)?(?![\d.,])|zero dollars|nothing at all)",
        r"\bwaive (?:the |his |her |their |all )?(?:invoices?|payments?|full amount|whole (?:bill|amount|invoice)|entire|balance)\b",
    ),
    Rule(
        "negative_amount",
        _REVENUE,
        "an amount of money is less than nothing",
        _negative_amount,
    ),
    message_rule(
        "helping_competitor",
        _REVENUE,
        "work would be handed to a competitor",
        "competitor rival",
        r"\b(?:give|send|pass|hand|refer|forward)\b[^.;\n]{0,40}\b(?:leads?|customers?|jobs?|quotes?|work|clients?|enquir\w+)\b[^.;\n]{0,25}\bto (?:an? |our |the |"
        r"another |one of our )?(?:competitors?|rivals?)\b",
    ),
)
