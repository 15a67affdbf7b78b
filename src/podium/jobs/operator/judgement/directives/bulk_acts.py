"""Directive 1: no act on everything at once. Reading everything is harmless."""

from __future__ import annotations

from podium.jobs.operator.judgement.directives.rules import Rule, message_rule
from podium.jobs.operator.models import Directive

_SAFETY = Directive.SAFETY
_ALL = (
    r"(?:(?:the )?all(?! ?-? ?day)(?: of)?(?: (?:the|our|my|their|his|her|those|these))?|any and all|"
    r"(?:the|our) (?:whole|entire)(?: lot of)?)"
)
_EVERY = r"(?:every|each)(?: (?:single|last|and every))?(?: one of (?:the|our|my))?"
_BETWEEN = (
    r"(?: (?!(?:on|in|of|for|from|to|at|with|by|about|and|or|that|which|who|are|is|as|into|if|when|before|after|"
    r"because|so|the|a|an|his|her|my|our)\b)[\w'/-]+){0,3}"
)
_RECORDS = (
    r"(?:invoices|quotes|jobs|leads|customers|clients|inspections|contacts|bookings|appointments|snapshots|"
    r"backups|receipts|users|accounts|tables|enquiries|subscribers|data|database|db|crm|history|logs|runs|approvals)"
)
_RECORD = (
    r"(?:invoice|quote|job|lead|customer|client|inspection|contact|booking|appointment|snapshot|backup|"
    r"receipt|user|account|table|enquiry|record|run|approval)"
)
_PARTS = r"(?:records|notes|tasks|payments|files|photos|assets|messages|reminders)"
_OF_ONE = r"(?! (?:for|of|on|in|from|at|about|under|attached) )"
_ACT = (
    r"(?:void|delete|erase|wipe|purge|destroy|nuke|trash|drop|cancel|archive|remove|clear|scrap|bin|refund|write "
    r"off|decline|reject|accept|approve|finali[sz]e|complete|close|reopen|submit|bill|charge|mark|move|set|change|"
    r"update|assign|reassign|restore|reinstate|undo|reverse|get rid of|reschedule|kill|convert)"
    r"(?: (?:out|off|absolutely|literally))?"
)
_BROADCAST = r"(?:text|sms|email|e-mail|message|notify|spam|blast|mail|whatsapp)(?: out)?"
_REACH = r"(?:text|sms|email|e-mail|message|notify|spam|blast|mail|whatsapp|contact|call|ring|phone)(?: out)?"
_PEOPLE = (
    r"(?:customers?|clients?|leads?|homeowners?|contacts?|people|prospects?|person|residents?|tenants?|subscribers?|"
    r"numbers|suburb|database|(?:mailing|contact|customer|client) list|phone book|address book)\b(?!')"
)
_OURS = (
    r"(?! (?:in|on|at|from) (?:the |our |his |her )?(?:office|team|crew|staff|site|yard|warehouse|workshop|group|job|"
    r"meeting)\b)(?! (?:here|involved|on site|else on)\b)"
)

RULES: tuple[Rule, ...] = (
    message_rule(
        "everything_at_once",
        _SAFETY,
        "the message asks to act on everything at once; name the one that is meant",
        "all every each whole entire lot",
        rf"\b{_ACT} {_ALL}{_BETWEEN} (?:{_RECORDS}\b(?! (?:detail|info|number|name|address|entr|base))|{_PARTS}\b{_OF_ONE})",
        rf"\b{_ACT} {_EVERY}{_BETWEEN} (?:{_RECORD}\b|(?:note|task|payment|file)\b{_OF_ONE})",
        r"\b(?:void|delete|erase|wipe|purge|destroy|nuke|trash|cancel|archive|refund|undo|reset|finali[sz]e|accept|"
        r"decline)(?: (?:out|off|absolutely|literally))? (?:everything|it all|all of (?:it|them)|the (?:whole )?lot(?! \d)|"
        r"all(?= ?(?:$|[.,!;\n])))",
        r"\b(?:remove|clear) (?:everything|it all|the (?:whole )?lot)"
        r"(?! (?:from|off|out|on|at|in|around|under|that|up|away|near|we|you|i)\b)",
        rf"\b(?:create|add|make|book|schedule|raise|issue)\b[^.;?!\n]{{0,40}} for (?:{_ALL}|{_EVERY}){_BETWEEN} "
        r"(?:customers?|clients?|leads?|jobs?|contacts?)\b",
    ),
    message_rule(
        "everybody_at_once",
        _SAFETY,
        "the message asks to write to everybody at once; name the person who is meant",
        "all every each whole entire",
        rf"\b{_REACH} (?:(?:an?|the) \w+ to )?(?:{_ALL}|{_EVERY}){_BETWEEN} {_PEOPLE}",
        rf"\b{_BROADCAST} (?:everyone|everybody){_OURS}",
        r"\b(?:send|forward|blast|shoot|fire off|push)\b[^.;?!\n]{0,60}\bto "
        rf"(?:(?:{_ALL}|{_EVERY}){_BETWEEN} {_PEOPLE}|(?:everyone|everybody)\b{_OURS})",
        rf"\b(?:send|give) (?:(?:everyone|everybody)\b{_OURS}|(?:{_ALL}|{_EVERY}){_BETWEEN} {_PEOPLE})",
    ),
    message_rule(
        "other_languages_everything",
        _SAFETY,
        "the message asks to act on everything at once; name the one that is meant",
        "borra elimina anula supprime efface annule losche storniere entferne cancella apaga "
        "удали сотри 删除 取消所有",
        r"\b(?:borra|elimina|anula|cancela|borrar|eliminar) (?:todo|todos|todas|tudo)\b",
        r"\b(?:supprime|supprimez|efface|effacez|annule|annulez) (?:tout|tous|toutes)\b",
        r"\b(?:losche|loesche|storniere|entferne) (?:alle[sn]?|samtliche)\b",
        r"\b(?:cancella|elimina) (?:tutto|tutte|tutti)\b|\bapaga tudo\b",
        r"(?:удали|сотри)(?:те)? (?:все|всё|всех)|(?:删除|取消)(?:所有|全部)",
    ),
)
