"""Rules of directives 2 to 5: contract, continuity, revenue and brand."""

from __future__ import annotations

import re

from podium.core.packs import Pack, PackTool, Skill
from podium.jobs.operator.judgement.directives.rules import (
    Case,
    Rule,
    compiled,
    message_rule,
    outgoing_rule,
)
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


_CONTRACT_RULES: tuple[Rule, ...] = (
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
        "the message contains SQL; only registered tools touch the database",
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
        "the message contains shell commands; only registered tools act",
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
"""Directive 2: the registry is law. What it does not have is not done, by no other way either."""


_CONTINUITY = Directive.CONTINUITY
_STOP = (
    r"(?:stop|kill|shut ?down|terminate|halt|pause|disable|turn off|switch off|crash|suspend|take down|bring down|"
    r"shut off|pull the plug on|unplug|freeze|block|overload)"
)
_WHOSE = r"(?:(?:the|our|all|every|a|my|this|render|background|podium|operator|gem|production|live|main|whole|entire|queue|job) ){0,4}"
_MACHINE = (
    r"(?:(?:render|background|queue|podium|operator|job) workers|worker\b(?!s)(?! (?:from|at|on site|who|bob|dave))|queues?|engine(?: room)?|"
    r"scheduler|daemon|(?:web|database|app|production|mail) ?servers?|server|database|operator|production(?: system)?|"
    r"background jobs|job runner)\b"
)
_OFF = (
    r"(?:disabl(?:e|ing)|turn(?:ing)? off|switch(?:ing)? off|suppress|suspend|deactivate|kill|mute)"
)
_PROOF = (
    r"(?:receipts|receipt writing|audit (?:log|logs|logging|trail)|logging|journal(?:ing)?|quality gates?|gate checks?|the gate|"
    r"backups?|(?:row |sql )?verification|monitoring|rollbacks?|undo|alerting|rate limits?)\b(?! (?:at the|on the) (?:front|side|back))"
)

_CONTINUITY_RULES: tuple[Rule, ...] = (
    message_rule(
        "stopping_worker",
        _CONTINUITY,
        "operation endangers worker stability",
        "worker queue engine scheduler daemon server database operator production jobs runner",
        rf"\b{_STOP} {_WHOSE}{_MACHINE}",
        rf"\b(?:shut|take|bring|turn|switch) {_WHOSE}{_MACHINE} (?:down|off|offline)\b",
    ),
    message_rule(
        "purging_queue",
        _CONTINUITY,
        "operation endangers queue stability",
        "queue",
        r"\b(?:purge|clear|flush|empty|drain|wipe|delete|drop|nuke|reset)(?: (?:out|the|our|whole|entire|all|job|work|task|call|"
        r"render)){0,4} queues?\b",
        r"\b(?:flood|spam|overload|jam|clog)(?: \w+){0,2} queue\b",
    ),
    message_rule(
        "dropping_data",
        _CONTINUITY,
        "operation endangers the data that all work depends on",
        "table database db disk schema production data",
        r"\b(?:drop|wipe|delete|erase|destroy|reset|purge|nuke|format|corrupt|truncate|empty)(?: (?:the|our|all|whole|entire|live|production|"
        r"main|prod|roofing|supabase)){0,4} (?:database|db|prod|hard drive|disk|production data|schema)\b",
        r"\b(?:drop|wipe|delete|truncate|empty)(?: (?:the|our|all|whole))*(?: (?:leads?|jobs?|quotes?|invoices?|customers?|inspections?|"
        r"tasks?|notes?|payments?|database|sql|\w+_\w+)) tables?\b",
        r"\bdrop (?:all )?(?:the |our )?tables(?= ?(?:$|[.,!;]))",
    ),
    message_rule(
        "blinding",
        _CONTINUITY,
        "operation removes receipts, checks or backups",
        "receipt audit log journal gate backup verification monitoring rollback undo alert limit trace record paper",
        rf"\b{_OFF} (?:(?:the|all|our|any|nightly|daily|automatic|your|database|system) ){{0,3}}{_PROOF}",
        r"\b(?:skip|suppress|omit|forgo|bypass|stop (?:writing|keeping|making|recording|issuing)) (?:(?:the|all|any|our|writing|making) ){0,3}"
        r"(?:receipts?(?! (?:number|photo|copy|email|to))|audit (?:log|trail)|quality gates?|backups?|verification)\b",
        r"\b(?:delete|remove|wipe|destroy|erase)(?: (?:the|all|our|any|nightly|daily|old|database|system)){1,3} (?:backups|audit (?:logs?|trail)|"
        r"receipt (?:chain|log)|journal|logs)\b",
        r"\bdo(?: it| this| that)? without (?:(?:an?|any|writing|leaving|keeping) ){0,3}(?:receipts?|audit|log|trace|record)\b",
        r"\b(?:no|leave no|without (?:leaving )?an?y?) (?:paper trail|trace|audit trail)\b",
        r"\b(?:don't|do not|without) (?:log|logging|journal|record|recording) (?:this|it|any of (?:this|it))\b"
        r"(?! (?:as|in|under|to|until|yet|on|against|for|with))",
    ),
    message_rule(
        "flooding",
        _CONTINUITY,
        "operation would flood the queue",
        "0 thousand hundred million infinit loop forever",
        r"\b(?:create|add|make|send|enqueue|queue|generate|book|insert)(?: (?:up|me|us|about|over|at least)){0,2} (?:\d{1,3}(?:[,\s]\d{3})+|[1-9]\d{2,}|"
        r"(?:a |one )?(?:thousand|million)s?(?: of)?|hundreds of) (?:\w+ )?(?:leads|tasks|notes|jobs|quotes|invoices|messages|sms|texts|emails|"
        r"inspections|calls|payments|snapshots)\b",
        r"\b(?:infinite|endless) loop\b|\b(?:repeat|loop|keep (?:doing|sending|creating))\b[^.;\n]{0,30}\b(?:forever|endlessly|without end)\b",
    ),
)
"""Directive 3: what the work runs on is not stopped, emptied or blinded."""


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


_REVENUE_RULES: tuple[Rule, ...] = (
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
        "a payment that nobody made would be recorded",
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
        "an amount of money is negative",
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
"""Directive 4: lead, inspection, quote, job, payment, review. No stage is skipped, nothing is given away."""


_BRAND = Directive.BRAND
_INSULT = (
    r"(?:idiots?|morons?|liars?|scammers?|cheapskates?|losers?|pathetic|dumb|stupid|fools?|thie(?:f|ves)|crooks?|"
    r"disgusting|scum|imbeciles?|retard(?:ed|s)?|worthless|pigs?|clowns?|parasites?|criminals?|frauds?|scumbags?|bludgers?)"
)

_BRAND_RULES: tuple[Rule, ...] = (
    outgoing_rule(
        "profanity",
        _BRAND,
        "the outgoing message is profane",
        "fuck fuk f*ck shit sh*t cunt bitch bastard arse ass dick wank piss prick twat bollock slut whore nigg fag",
        r"\b(?:mother)?f(?:u|\*|\W)c?k(?:ing|er|ers|ed|wit|s|in)?\b|\b(?:bull|horse|dip)?sh[i*]t(?:ty|head|s|e)?\b|\bcunts?\b|\bbitch(?:es|y)?\b",
        r"\bbastards?\b|\b(?:arse|ass)(?:holes?|hats?)\b|\bdick(?:head|heads|s)\b|\bwank(?:er|ers)\b|\bpiss (?:off|ed off)\b|\bpricks?\b|\btwats?\b",
        r"\bbollocks\b|\b(?:slut|whore)s?\b|\bnigg(?:er|a)s?\b|\bfag(?:got)?s?\b",
    ),
    outgoing_rule(
        "insult",
        _BRAND,
        "the outgoing message insults somebody",
        "you he she they his her your are shut hate",
        rf"\b(?:you(?:'re| are| r)|he(?:'s| is)|she(?:'s| is)|they(?:'re| are)|(?:the )?(?:customer|client|neighbou?r)(?:'s| is))"
        rf"(?: (?:all|just|both|nothing but))?(?: an?| such an?| a bunch of)?(?: (?!not\b|never\b)\w+){{0,2}} {_INSULT}\b",
        rf"\byou (?:\w+ )?{_INSULT}(?= ?(?:$|[.,!?;]))|\byou (?:stupid|dumb|pathetic|lying|ugly|filthy) \w+|\bshut (?:your mouth|the hell up|up)\b|\b(?:we|i) hate you\b",
        rf"\b(?:competitors?|other roofers?|those (?:guys|roofers))(?: \w+)? (?:are|is)(?: all| just)?(?: an?)?(?: \w+)? {_INSULT}\b",
    ),
    outgoing_rule(
        "threat",
        _BRAND,
        "the outgoing message threatens somebody",
        "we i or watch sorry regret know_where else",
        r"\b(?:we|i)(?:'ll| will|'re going to|'m going to| are going to| am going to| gonna) (?:hurt|kill|find|ruin|destroy|bash|come after|get|"
        r"sort) (?:you|your (?:family|life|kids|house|business))(?= ?(?:$|[.,!?;]| if| unless| and| for| or| when))",
        r"\b(?:we|i)(?:'ll| will) (?:break|smash|burn) (?:your|you|his|her|their) ?(?:legs?|arms?|face|neck|car|windows?|house|down)\b",
        r"\bmake (?:you|your life) (?:pay for|sorry|regret|hell|suffer)\b|\bwatch your back\b|\byou(?:'ll| will) (?:be sorry|regret (?:it|this))\b",
        r"\bor else\b|\bwe know where you live\b|\brip (?:the|your) (?:new )?roof off\b",
    ),
    outgoing_rule(
        "false_claim",
        _BRAND,
        "the outgoing message makes a promise that nobody can keep",
        "never guarante leak cheapest best endorsed government approved collapse lawsuit refund forever proof",
        r"\b(?:never|won't ever|will not ever) (?:ever )?leaks?\b|\b100 ?% (?:leak[\s-]?proof|waterproof forever|guarantee|risk[\s-]free)",
        r"\bguarantee(?:d|s)?(?: \w+){0,4} (?:forever|for ever|for eternity|never to leak|no leaks ever)\b",
        r"\b(?:cheapest|best|only (?:licensed|honest))(?: \w+){0,2} in (?:australia|melbourne|victoria|the (?:world|country|state|universe))\b",
        r"\b(?:endorsed|recommended|approved) by (?:the )?(?:government|prime minister|council|pope|king|vba|cfa|housing commission)\b|\bgovernment[\s-]approved\b",
        r"\b(?:roof|ceiling)(?: will| is going to|'ll)(?: \w+)? collapse\b[^.;\n]{0,40}\b(?:unless|if) you (?:don't )?(?:sign|pay|accept|book)\b",
    ),
    outgoing_rule(
        "harassing",
        _BRAND,
        "the outgoing message harasses somebody",
        "sexy nude naked babe hot_body sleep_with",
        r"\b(?:sexy|nudes?|hot body|sleep with (?:me|us)|hey babe|send (?:me )?naked)\b",
    ),
)
"""Directive 5: what goes out bears the business's name. These rules look at outgoing text alone."""

RULES: tuple[Rule, ...] = (
    *_CONTRACT_RULES,
    *_CONTINUITY_RULES,
    *_REVENUE_RULES,
    *_BRAND_RULES,
)
