"""Directive 3: what the work runs on is not stopped, emptied or blinded."""

from __future__ import annotations

from podium.jobs.operator.judgement.directives.rules import Rule, message_rule
from podium.jobs.operator.models import Directive

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

RULES: tuple[Rule, ...] = (
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
        "operation endangers the data that all work stands on",
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
        "operation takes away receipts, checks or backups",
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
