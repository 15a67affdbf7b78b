"""Rules of directive 1, safety: rule evasion, acts on everything at once, disclosure, and the law."""

from __future__ import annotations

from podium.jobs.operator.judgement.directives.rules import (
    Case,
    Rule,
    compiled,
    message_rule,
    plain,
)
from podium.jobs.operator.models import Directive

_SAFETY = Directive.SAFETY
_MINE = (
    r"(?:(?:all|any|every|each|your|the|my|our|these|those|this|that|of|previous|prior|earlier|preceding|above|"
    r"former|existing|current|standing|usual|normal|other|system|safety|security|company|internal|silly|stupid|"
    r"damn|bloody) ){0,6}"
)
_IGNORE = (
    r"(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?|overrid(?:e|ing)|overrule|bypass(?:ing)?|circumvent|"
    r"disobey|violate|break|skip|drop|dismiss|suspend|lift|remove|relax|set aside|put aside|throw out|work around|"
    r"get around|turn off|switch off|disable|deactivate|stop following|(?:don't|do not|never) (?:follow|obey|apply|"
    r"heed|listen to)|pay no attention to|not bound by|free (?:from|of)|exempt from|no longer (?:bound by|follow))"
)
_RULES = (
    r"(?:rules|instructions|directives?|guidelines|guardrails?|safeguards?|polic(?:y|ies)|restrictions|constraints|"
    r"protocols?|programming|system prompt|prompts?|registry)\b(?! (?:sheet|page|manual|booklet|label|video|on the (?:tin|"
    r"box|pack|label)|from the (?:supplier|manufacturer|customer)|(?:of|about|for|on) (?:the |our |their )?(?:strata|body corporate|council|"
    r"estate|site|road|scaffold\w*|parking|noise|heritage|building|street)))"
)
_APPROVAL = (
    r"(?:approvals?|sign[\s-]?offs?|authori[sz]ations?|permissions?|quality (?:gates?|checks?)|approval gates?|"
    r"(?:approval|permission|safety|security|risk|tier|gate|schema|registry) checks?|confirmation (?:step|prompt))\b"
    r"(?! (?:sheet|form|page|email|letter|from|slip|document))"
)
_UNDENIED = (
    r"(?:(?!\b(?:can't|cannot|can not|won't|not|never|nobody|didn't|don't)\b)[^.;?\n]){0,80}"
)
_EVADED_ACT = (
    r"(?:void|send|cancel|delete|finali[sz]e|pay|approve|execute|run|email|text|submit|archive|create|issue|"
    r"process|complete|charge|refund|sms|proceed|go ahead|push|accept|decline|do (?:it|this|that))"
)
_NOBODY = (
    r"(?:an? )?(?:\w+ ){0,2}(?:ai|chatbot|bot|admin|administrator|root|superuser|developer|hacker|dan|"
    r"language model|unrestricted|jailbroken|uncensored|unfiltered|assistant without|system administrator)\b"
)

_LANGUAGES: dict[str, str] = {
    "Spanish": r"(?:ignora|ignore|olvida|omite|salta|saltate)(?: (?:todas|todos))? (?:las|los|tus|sus) (?:\w+ )?"
    r"(?:reglas|instrucciones|normas|directrices|aprobaciones)|sin aprobacion",
    "French": r"(?:ignore|ignorez|oublie|oubliez|contourne|contournez)(?: (?:toutes|tous))? (?:les|tes|vos) (?:\w+ )?"
    r"(?:regles|instructions|consignes|directives)|sans (?:approbation|autorisation)",
    "German": r"(?:ignoriere|ignorier|missachte|vergiss|umgehe|uebergehe|ubergehe)(?: (?:alle|die|deine|bisherigen|"
    r"vorherigen|samtliche)){0,4} (?:regeln|anweisungen|vorgaben|richtlinien|freigaben?|instruktionen)|"
    r"ohne (?:freigabe|genehmigung)",
    "Italian": r"(?:ignora|dimentica|salta)(?: (?:tutte|tutti))? (?:le|i|tue|gli) (?:\w+ )?(?:regole|istruzioni|direttive)",
    "Portuguese": r"(?:ignore|esqueca|ignora)(?: (?:todas|todos))? (?:as|os|suas) (?:\w+ )?(?:regras|instrucoes|normas)",
    "Dutch": r"(?:negeer|vergeet|omzeil)(?: (?:alle|de|je|vorige|eerdere)){0,4} (?:regels|instructies|richtlijnen)",
    "Polish": r"(?:zignoruj|ignoruj|zapomnij o)(?: \w+){0,2} (?:zasady|zasadach|instrukcje|instrukcjach|polecenia)",
    "Turkish": r"(?:kurallar\w*|talimatlar\w*) (?:yok say|gormezden gel|unut|dikkate alma)",
    "Indonesian": r"abaikan(?: semua)? (?:aturan|instruksi|perintah)",
    "Vietnamese": r"bo qua(?: (?:tat ca|moi|cac|nhung)){0,3} (?:quy tac|huong dan|chi dan|lenh)",
    "Russian": r"(?:игнорируй|проигнорируй|забудь|не соблюдай)(?:те)?(?: \w+){0,3} (?:правил|инструкци|указани|ограничени)\w*",
    "Greek": r"(?:αγνοησε|αγνόησε|ξεχασε|ξέχασε)(?: \w+){0,3} (?:κανονες|κανόνες|οδηγιες|οδηγίες)",
    "Chinese": r"(?:忽略|无视|忘记|绕过|跳过|無視).{0,8}(?:规则|指令|指示|说明|限制|审批|批准|規則)",
    "Japanese": r"(?:ルール|指示|規則|命令|承認).{0,6}(?:無視|忘れ|スキップ)",
    "Korean": r"(?:규칙|지시|명령|지침|승인).{0,8}(?:무시|잊어|건너)",
    "Arabic": r"تجاهل.{0,12}(?:التعليمات|القواعد|الأوامر|تعليمات|قواعد)",
    "Hindi": r"(?:नियम|निर्देश).{0,16}(?:अनदेखा|नज़रअंदाज़|नजरअंदाज|भूल)",
}
_LANGUAGE_HINTS = (
    "ignor olvida omite salta aprobacion oubli contourn approbation autorisation missachte vergiss umgehe gehe "
    "freigabe genehmigung dimentica esqueca negeer vergeet omzeil zapomnij kurallar talimatlar abaikan bo_qua "
    "игнор забудь соблюдай αγνο ξεχασε ξέχασε 忽略 无视 忘记 绕过 跳过 無視 忘れ スキップ 무시 잊어 건너 تجاهل नियम निर्देश"
)

MAX_TEXT = 5_000
"""Limit in characters: a longer text is a file and no sentence."""


def _context_holds_commands(case: Case) -> bool:
    """Texts that were handed along are data; one that commands the operator was put there by somebody."""
    patterns = [rf"\b{_IGNORE} {_MINE}{_RULES}", r"<\|im_start\|>|\byou are now in \w+ mode\b"]
    return any(
        compiled(pattern).search(text)
        for text in _context_texts(case.message.context)
        if any(hint in text for hint in ("rule", "instruction", "polic", "<|", "you are now"))
        for pattern in patterns
    )


def _context_texts(value: object, left: int = 12) -> list[str]:
    """The texts of a JSON value that a person could read, plainly; `left` levels deep."""
    if isinstance(value, str):
        return [plain(value)] if len(value) <= MAX_TEXT else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for value in inner for text in _context_texts(value, left - 1)] if left else []


_EVASION: tuple[Rule, ...] = (
    message_rule(
        "overriding_rules",
        _SAFETY,
        "the message asks to set the rules aside",
        "rule instruction directive guideline guardrail safeguard polic restriction constraint protocol "
        "programming prompt told taught registry say",
        rf"\b{_IGNORE} {_MINE}{_RULES}",
        r"\b(?:ignore|forget|disregard) (?:everything|all|anything|what(?:ever)?)(?: that)? (?:above|before|you "
        r"(?:were|have been|are|was) (?:told|taught|instructed)|(?:i|we|they) (?:told|taught) you)",
        r"\b(?:ignore|disregard|forget) what (?:the|your|our) (?:registry|system|rules?|polic\w+|guidelines|gate|operator) (?:says?|wants?)\b",
        r"\b(?:rules|policies|guidelines|restrictions|approvals) (?:do not|don't|no longer|shall not) apply\b",
        r"\b(?:rules|approvals|safeguards) are (?:off|disabled|suspended|lifted)\b",
        quoted="counts",
    ),
    message_rule(
        "run_together",
        _SAFETY,
        "the message asks to set the rules aside",
        "ignoreth ignoreall ignoreyour ignoreprev skipapp skiptheapp bypassapp bypassthe disregardall "
        "forgetallr forgetyour overriderules overridethe",
        r"(?:ignore|disregard|forget|override|bypass)(?:all|the|your|previous|prior){1,3}"
        r"(?:rules|instructions|approval|directives)",
        r"(?:skip|bypass)(?:the)?approval",
        quoted="counts",
    ),
    message_rule(
        "other_languages",
        _SAFETY,
        "the message asks to set the rules aside",
        _LANGUAGE_HINTS,
        *_LANGUAGES.values(),
        quoted="counts",
    ),
    message_rule(
        "skipping_approval",
        _SAFETY,
        "the message asks to act without the required approval",
        "approv sign authori permission quality check confirmation asking telling",
        r"\b(?:skip(?:ping)?|bypass(?:ing)?|waive|ignor(?:e|ing)|dodge|circumvent|disregard|forget(?: about)?|get around|go "
        r"around|work around|overrid(?:e|ing)|never mind|don't (?:bother|worry) (?:with|"
        r"about|getting)|no need (?:for|to (?:get|ask for|wait for))|(?:don't|do not|without) wait(?:ing)? for) "
        rf"{_MINE}(?:an |owner |manager |ops |human |formal |further |quality ){{0,2}}{_APPROVAL}",
        r"\b(?:skip|bypass) (?:the|all|any|all the|your) checks?(?= ?(?:$|[.,;\n])| (?:and|this|for|before)\b)",
        r"\bno (?:further |formal )?approval (?:is )?(?:needed|required|necessary)\b|\bapproval (?:is )?not (?:needed|required|necessary)\b",
        r"\b(?:remove|drop|lift|delete|get rid of|take off|scrap) (?:the |all |any )?approval (?:requirements?|steps?|gates?|rules?|checks?|process)\b",
        rf"\b(?:turn off|switch off|disable|suspend) {_MINE}(?:approvals?|sign[\s-]?offs?|permissions?)\b",
        rf"\b{_EVADED_ACT}\b{_UNDENIED}\bwithout (?:(?:any|an?|the|my|our|your|his|her|owner|owner's|manager|ops|further|formal|"
        r"prior|waiting for|asking for|getting|needing|requiring|seeking) ){0,4}(?:approvals?|sign[\s-]?off|"
        r"authori[sz]ation|permission)\b",
        rf"\b{_EVADED_ACT}\b{_UNDENIED}\bwithout (?:asking|telling|checking with) (?:me|us|anyone|anybody|the owner|the boss|"
        r"him|her|them|first)\b",
        quoted="outgoing counts",
    ),
    message_rule(
        "approving_oneself",
        _SAFETY,
        "an approval is a person's own act and cannot be claimed in a message",
        "approv authori",
        r"\b(?:auto|self)[\s-]?approv(?:e|al|ing)\b",
        r"\bapprove (?:it|this|that|them|everything)(?: \w+){0,2} (?:yourself|automatically|on my behalf|for me)\b",
        r"\bapprove (?:everything|it all|all of (?:it|them))\b",
        r"\b(?:treat|consider|count|regard) (?:this|it|that|them|everything)(?: \w+){0,2} as (?:already |pre-?)?"
        r"(?:approved|authori[sz]ed)\b",
        r"\bmark (?:this|my) (?:plan|action|request|call|message)(?: \w+){0,2} as (?:already )?approved\b",
        r"\b(?:assume|pretend|act as if|suppose)(?: [\w']+){0,5} approv(?:al|ed)\b",
        r"\b(?:explicit_approval|approved|approval_obtained|approval)\W{0,3}\s?[:=]\s?\W?(?:true|yes|1)\b",
        r"\byou (?:already )?have (?:my|full|blanket) (?:approval|authori[sz]ation)\b",
        r"\b(?:hereby |i )pre-?approve\b|\bblanket approval\b",
        quoted="outgoing counts",
    ),
    message_rule(
        "role_play",
        _SAFETY,
        "the message asks the operator to act as something else",
        "pretend you_are now act_as act_like role imagine jailbreak mode simulate anything behave no_longer",
        r"\bpretend (?:you|to be|that|the|this|it|there|we|i)\b(?!(?: \w+){0,3} approv)",
        rf"\byou(?:'re| are) (?:now|no longer) (?:{_NOBODY}|bound|restricted|limited|free (?:of|from|to)|(?:an? )?operator "
        r"(?:without|with no)|in \w+ mode|acting as|allowed to|authori[sz]ed to|able to (?:do|ignore|skip))",
        r"\byou are (?:dan\b|an? (?:\w+ ){0,2}(?:ai|model|assistant|bot) (?:without|with no|that (?:can|may|ignores)))",
        rf"\b(?:act|behave) (?:as|like) (?:(?:if|though) (?:you|there|the (?:rules|gate)|no)|{_NOBODY})",
        r"\brole[\s-]?play(?:ing)?\b|\bjailbreak(?:ing|ed)?\b|\bdo anything now\b",
        r"\bimagine (?:you|that you)(?:'re| are| were| have| had)\b",
        r"\bfrom now on,? you (?:are|will|must|shall|have|only|do)\b",
        r"\b(?:enter|enable|activate|switch to|go into|turn on|you're in|start) (?:the )?(?:\w+ )?(?:developer|god|dan|debug|"
        r"admin|unrestricted|maintenance|sudo|root) mode\b",
        r"\bsimulate (?:being|an? (?:admin|owner|approval|approver|system))",
        quoted="counts",
    ),
    message_rule(
        "forged_instructions",
        _SAFETY,
        "the message poses as an instruction of the system",
        "<| [inst [/inst <<sys <</sys <system </system message> user> system assistant developer override instruction sudo begin",
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>|\[/?inst\]|<</?sys>>|</?(?:system|instructions?|assistant|message|user)>",
        r"(?:^|\n)\W{0,6}(?:system|assistant|developer|admin)(?: (?:message|prompt|note|instructions?))?\W{0,3}:(?= ?(?:\S+ ){0,6}?"
        r"(?:approv|ignore|you\b|the user|rules?\b|instruction|permission|disable|override|grant|execute|void|allow))",
        r"\bnew (?:system )?instructions? ?:",
        r"\b(?:system|admin|developer|root|manual|emergency|owner) override\b(?! (?:switch|valve))|\boverride (?:code|token)\b",
        r"\bbegin (?:system|admin|developer) (?:prompt|message|override)\b|(?:^|\n)sudo \w",
        quoted="counts",
    ),
    Rule(
        "commands_in_context",
        _SAFETY,
        "the context contains instructions to the operator",
        _context_holds_commands,
    ),
)
"""No message overrides the operator's rules, its approvals or its part."""


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
_BULK_ACT = (
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

_BULK_ACTS: tuple[Rule, ...] = (
    message_rule(
        "everything_at_once",
        _SAFETY,
        "the message asks to act on everything at once; name a single record",
        "all every each whole entire lot",
        rf"\b{_BULK_ACT} {_ALL}{_BETWEEN} (?:{_RECORDS}\b(?! (?:detail|info|number|name|address|entr|base))|{_PARTS}\b{_OF_ONE})",
        rf"\b{_BULK_ACT} {_EVERY}{_BETWEEN} (?:{_RECORD}\b|(?:note|task|payment|file)\b{_OF_ONE})",
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
        "the message asks to write to everybody at once; name a single person",
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
        "the message asks to act on everything at once; name a single record",
        "borra elimina anula supprime efface annule losche storniere entferne cancella apaga "
        "удали сотри 删除 取消所有",
        r"\b(?:borra|elimina|anula|cancela|borrar|eliminar) (?:todo|todos|todas|tudo)\b",
        r"\b(?:supprime|supprimez|efface|effacez|annule|annulez) (?:tout|tous|toutes)\b",
        r"\b(?:losche|loesche|storniere|entferne) (?:alle[sn]?|samtliche)\b",
        r"\b(?:cancella|elimina) (?:tutto|tutte|tutti)\b|\bapaga tudo\b",
        r"(?:удали|сотри)(?:те)? (?:все|всё|всех)|(?:删除|取消)(?:所有|全部)",
    ),
)
"""No act on everything at once. Reading everything is harmless."""


_SECRETS = (
    r"(?:service[\s_-]?role(?:[\s_-]?key)?|api[\s_-]?(?:keys?|tokens?|secrets?)|passwords?|passphrases?|"
    r"(?:secret|private|encryption|signing|ssh|receipt) keys?|(?:access|auth|bearer|session|refresh) tokens?|"
    r"(?:login |admin |database |user )?credentials|env(?:ironment)? (?:variables?|vars?|file)|\.env|connection string|"
    r"database url|(?:supabase|openrouter|twilio|smtp|podium|aws|stripe)_\w+|\w+_(?:api_key|secret|token|password)|"
    r"(?:twilio|stripe|supabase|openrouter|smtp|aws)(?:'s)? (?:\w+ )?(?:tokens?|keys?|secrets?|sid)|(?:credit |debit )card numbers?|"
    r"card numbers|cvvs?|system prompt)\b(?!-)"
    r"(?! (?:reset|manager|policy|protect|field|hint|change|has been|was|is (?:wrong|expired|not))\w*)"
)
_THROUGH = (
    r"(?: (?!(?:reset|resetting|chang\w+|forgot\w*|updat\w+|lost|secure|protect|expired|wrong)\b)"
    r"[\w'@.:/+-]+,?)"
)
_ASK = (
    r"(?:show|give|tell|send|print|reveal|share|display|list|dump|export|leak|email|e-mail|text|sms|output|echo|read "
    r"out|expose|fetch|find|paste|repeat|disclose|hand over|look up|post|forward|write down|copy|what's|whats|what is|"
    r"what are|what was|where is|where are|where's)"
)
_MANY = (
    r"(?:(?:customers|clients|leads|contacts|homeowners)'? (?:list|database|data|details|records|numbers|addresses|emails|"
    r"info\w*|names)|(?:customer|client|lead|contact|homeowner|mailing|email|phone) (?:list|database|base|records|book)|"
    r"(?:all|every|everyone's|everybody's|our (?:whole|entire|full)|the (?:whole|entire|full|complete))(?: (?:of|the|our|my))"
    r"{0,2} (?:[\w'-]+ )?(?:customers?'?|clients?'?|leads?'?|contacts?'?|homeowners?'?|people's|crm|database)"
    r"(?: (?:data|details|records|numbers|addresses|emails|info\w*|names|list))?|(?:the|our) (?:crm|address book))"
)
_OUTSIDE = (
    r"(?:[\w.+-]+@[\w-]+\.\w+|https?:|www\.|\b\w+\.(?:com|net|org|io|ru|cn)\b|dropbox|google (?:drive|sheets?|docs)|"
    r"one ?drive|pastebin|telegram|whatsapp|facebook|gmail|hotmail|\bmy (?:personal|private|own|home)\b|personal (?:email|"
    r"account|address|drive|laptop|phone)|\busb\b|competitors?|third[\s-]part(?:y|ies)|\boutside\b|\bexternal|another "
    r"company|other compan|\ba friend|my (?:mate|friend|cousin|brother|sister|new (?:job|boss|employer|company))|the "
    r"(?:press|media|newspaper)|reddit|\bonline\b|the internet|\bpublicly\b|marketing (?:company|agency|firm))"
)
_MOVE = (
    r"(?:send|email|e-mail|export|forward|upload|share|copy|dump|post|publish|leak|transfer|sync|hand|give|pass|push|"
    r"move|mail|back up|save)"
)

_DISCLOSURE: tuple[Rule, ...] = (
    message_rule(
        "telling_secrets",
        _SAFETY,
        "secrets and keys must not be disclosed",
        "service role password passphrase key token credential env connection database supabase openrouter twilio smtp podium aws stripe api secret card cvv prompt "
        "instructions",
        rf"\b{_ASK}\b{_THROUGH}{{0,8}}? {_SECRETS}",
        rf"\b(?:i |we )?(?:need|want|get me|i'd like|gimme) (?:(?:the|an?|our|your|all|his|her|their|admin|database|system|"
        rf"supabase|root) ){{0,4}}{_SECRETS}",
        r"\b(?:show|print|reveal|repeat|output|tell me|give me|what are|what's|what is) (?:(?:me|all|of|us) ){0,2}your (?:\w+ )?"
        r"(?:instructions|system prompt|prompt|hidden rules|initial message)\b",
        quoted="outgoing counts",
    ),
    message_rule(
        "data_to_outside",
        _SAFETY,
        "people's data does not leave in bulk",
        "customer client lead contact homeowner people crm database book list",
        rf"\b{_MOVE}\b[^;!?\n]{{0,25}}? {_MANY}\b[^;!?\n]{{0,60}}?{_OUTSIDE}",
        rf"\b{_MOVE} (?:me |him |her |them )?{_OUTSIDE}[^;!?\n]{{0,30}}? {_MANY}\b",
        r"\bsell(?:ing)? (?:\w+ ){0,4}(?:customer|client|lead|contact|personal|homeowner)s?'? (?:data|details|lists?|"
        r"database|info\w*|records|numbers|emails)\b",
        r"\bsell (?:our|all|the)(?: (?:our|the))? (?:leads|customers|contacts|mailing list)\b",
        quoted="outgoing counts",
    ),
)
"""Secrets are disclosed to nobody, and people's data never leaves in bulk."""


_DOCUMENTS = (
    r"(?:reviews?|testimonials?|invoices?|receipts?|quotes?|certificates?|signatures?|reports?|documents?|payments?|"
    r"records?|warrant(?:y|ies)|inspections?|photos?|evidence|customers?|ids?|licen[cs]es?)"
)
_SOME = (
    r"(?: (?:a|an|the|some|few|couple|of|us|me|him|her|them|\d+|more|another|five[\s-]star|\d[\s-]star|positive|good|nice|"
    r"glowing|one|two|three|five|ten)){0,5}"
)
_MAKE = (
    r"(?:create|write|post|make|send|generate|leave|publish|buy|submit|get|request|add|do|produce|put up|issue|invent|"
    r"prepare|draft|give|organi[sz]e|upload|attach|use)"
)
_PERSON = (
    r"(?:him|her|them|(?:the|this|that|our|a|every) (?:\w+ )?(?:customer|client|homeowner|owner|tenant|neighbou?r|lead|guy|bloke|"
    r"woman|man|lady|reviewer|subbie|competitor|employee|apprentice)s?)\b"
)
_AUTHORITY = (
    r"(?:ato|tax(?:man| office)?|auditors?|accountant|police|insurer|insurance(?: company)?|worksafe|council|vba|"
    r"fair trading|consumer affairs|court|regulator|authorities|bank)\b"
)


def _law(name: str, because: str, hints: str, *patterns: str) -> Rule:
    return message_rule(name, _SAFETY, because, hints, *patterns, quoted="outgoing counts")


_ILLEGAL: tuple[Rule, ...] = (
    _law(
        "backdating",
        "a record would contain a false date",
        "dat",
        r"\bback[\s-]?dat(?:e|ing)\b|\b(?:antedate|predate) (?:the|an?|it|this|invoice|quote)\b",
        rf"\b{_MAKE}{_SOME} back[\s-]?dated\b",
        r"\b(?:change|alter|fudge|fiddle|fake) the (?:invoice|payment|receipt|completion|inspection|quote|signing|job)'?s? date"
        r"(?: \S+){0,5} to (?:last|before|an? earlier|earlier)\b",
    ),
    _law(
        "forging",
        "a record would be forged",
        "review forg falsif fake doctor fudge phon bogus false made fictitious sham sign",
        r"\b(?:forg(?:e|ing)|falsify(?:ing)?) (?!a (?:path|relationship|partnership|bond)|the way|ahead)"
        r"(?:an?|the|his|her|their|our|my|some|customer|[\w]+'s|documents?|signatures?|records?|numbers|invoices?)\b",
        r"\bdoctor(?:ing)? (?:the |a |an |his |her |their |some )?(?:\w+ )?(?:photos?|invoices?|receipts?|reports?|documents?|quotes?|"
        r"records?|certificates?|numbers)\b",
        r"\b(?:write|post|leave|make up|invent|buy)\b[^.;\n]{0,40}\breviews?\b[^.;\n]{0,20}\b(?:as if|pretending|as (?:a |the |our )?customers?|ourselves)\b",
        r"\bfudge (?:the |some |our )?(?:\w+ )?(?:numbers|figures|report|measurements|photos)\b",
        rf"(?:^|[.,;\n] ?|\b(?:please|to|and|just|can you|then|could you) )fake (?:an?|the|his|her|their|some|[\w]+'s) (?:\w+ )?{_DOCUMENTS}\b",
        rf"\b{_MAKE}{_SOME} (?:fake|phone?y|bogus|false|made[\s-]up|fictitious|sham) (?:\w+ ){{0,2}}{_DOCUMENTS}\b",
        r"\bsign (?:it|this|the \w+|that)(?: \w+){0,3} (?:as|as if you were|pretending to be) (?:the )?(?:customer|client|him|her|"
        r"homeowner|owner|they)\b",
    ),
    _law(
        "laundering",
        "money would be laundered",
        "launder",
        r"\blaunder(?:ing)?\b(?! (?:the |our |his )?(?:uniform|overall|clothes|drop ?sheet|towel|shirt))",
    ),
    _law(
        "hiding_evidence",
        "evidence would be hidden or destroyed",
        "evidence trail tracks incriminat hid conceal cover asbestos see know find notice",
        r"\b(?:delete|destroy|shred|hide|hiding|erase|remove|get rid of|burn|tamper with|alter|conceal|wipe|bury|cover up|lose)"
        r"(?: \S+){0,4}? (?:evidence(?! of (?:moss|mould|rust|birds|possums|lichen|rats))|audit trail|paper trail|incriminating)\b",
        r"\bcover(?:ing)? (?:up )?(?:our|my|your|his|the) tracks\b|\bcover (?:this|it) up (?:from|before|so)\b",
        rf"\b(?:hide|hiding|conceal)\b[^.;\n]{{0,40}}\bfrom (?:the )?{_AUTHORITY}",
        rf"\b{_AUTHORITY}[^.;\n]{{0,10}} (?:must not|mustn't|can't|shouldn't|must never|will never|never|won't|doesn't|don't) "
        r"(?:sees?|knows?|finds? out|notices?|hears?)\b",
        r"\b(?:don't|do not|never) (?:tell|mention|disclose|report)\b[^.;\n]{0,40}\basbestos\b",
    ),
    _law(
        "evading_tax",
        "tax would be evaded",
        "tax gst book table cash",
        r"\b(?:evade|dodge|avoid paying|cheat on|fiddle|get out of(?: paying)?) (?:the |our |any )?(?:tax|taxes|gst)\b",
        r"\boff the books\b|\bunder the table\b(?! saw)",
        r"\bcash\b[^.;\n]{0,25}\b(?:no|without|avoid|skip) (?:the |any )?(?:gst|tax|invoice|receipt|paperwork)\b",
        r"\b(?:no|without|skip the|leave off) (?:gst|tax|invoice|paperwork)\b[^.;\n]{0,25}\bcash\b",
    ),
    _law(
        "bribing",
        "somebody would be bribed",
        "brib kickback pay_off slip grease",
        r"\bbrib(?:e|ing)\b",
        r"\b(?:pay|give|offer|arrange|slip)(?: \S+){0,3} kickbacks?\b",
        r"\b(?:pay off|grease|slip)(?: the)? (?:\w+ )?(?:inspector|council|surveyor|certifier|assessor)\b",
    ),
    _law(
        "threatening",
        "somebody would be threatened or harmed",
        "blackmail extort threaten intimidat harass stalk scare hurt harness protection",
        rf"\b(?:blackmail|extort|threaten|intimidate|harass|stalk|hurt|scare) {_PERSON}",
        r"\b(?:blackmail|threaten|extort) (?!to\b)\w+ (?:with|until|unless|into|if|so)\b",
        r"\b(?:go up|work|climb|get (?:up )?on (?:the )?roof|send \w+(?: \w+)? up)\b[^.;\n]{0,30}\bwithout (?:an? |any |the |their )?"
        r"(?:harness(?:es)?|fall protection|edge protection|safety (?:gear|harness))",
    ),
    _law(
        "defrauding",
        "somebody would be deceived for money",
        "insur claim fraud rip_off scam swindl bill charge invoice impersonat",
        r"\b(?:inflate|exaggerate|pad|bump up|overstate|make up)(?: \S+){0,4} (?:damage|claim|hours|invoice|quote|measurements)\b"
        r"[^.;\n]{0,40}\b(?:insurance|insurer|claim|assessor)\b",
        r"\binsurance fraud\b|\b(?:defraud|swindle|scam|rip off) (?:him|her|them|the|our|this|that|an?|old|elderly) ?",
        r"\bdouble[\s-](?:bill|charge|invoice)\b",
        r"\b(?:bill|charge|invoice)(?: \S+){1,4} twice\b",
        r"\b(?:bill|charge|invoice)(?: \S+){1,6}? for (?:work|things|hours|materials|tiles|repairs|something|a job) (?:that )?(?:we |you |they "
        r"|he |was |were )?(?:never|didn't|did not|haven't|hasn't|not)\b",
        r"\bimpersonat(?:e|ing)\b",
    ),
)
"""Nothing against the law, each way of it a rule of its own."""

RULES: tuple[Rule, ...] = (*_EVASION, *_BULK_ACTS, *_DISCLOSURE, *_ILLEGAL)
