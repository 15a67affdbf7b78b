"""Directive 1: no message overrides the operator's rules, its approvals or its part."""

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
_ACT = (
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


RULES: tuple[Rule, ...] = (
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
        "the message asks to act without the approval that is needed",
        "approv sign authori permission quality check confirmation asking telling",
        r"\b(?:skip(?:ping)?|bypass(?:ing)?|waive|ignor(?:e|ing)|dodge|circumvent|disregard|forget(?: about)?|get around|go "
        r"around|work around|overrid(?:e|ing)|never mind|don't (?:bother|worry) (?:with|"
        r"about|getting)|no need (?:for|to (?:get|ask for|wait for))|(?:don't|do not|without) wait(?:ing)? for) "
        rf"{_MINE}(?:an |owner |manager |ops |human |formal |further |quality ){{0,2}}{_APPROVAL}",
        r"\b(?:skip|bypass) (?:the|all|any|all the|your) checks?(?= ?(?:$|[.,;\n])| (?:and|this|for|before)\b)",
        r"\bno (?:further |formal )?approval (?:is )?(?:needed|required|necessary)\b|\bapproval (?:is )?not (?:needed|required|necessary)\b",
        r"\b(?:remove|drop|lift|delete|get rid of|take off|scrap) (?:the |all |any )?approval (?:requirements?|steps?|gates?|rules?|checks?|process)\b",
        rf"\b(?:turn off|switch off|disable|suspend) {_MINE}(?:approvals?|sign[\s-]?offs?|permissions?)\b",
        rf"\b{_ACT}\b{_UNDENIED}\bwithout (?:(?:any|an?|the|my|our|your|his|her|owner|owner's|manager|ops|further|formal|"
        r"prior|waiting for|asking for|getting|needing|requiring|seeking) ){0,4}(?:approvals?|sign[\s-]?off|"
        r"authori[sz]ation|permission)\b",
        rf"\b{_ACT}\b{_UNDENIED}\bwithout (?:asking|telling|checking with) (?:me|us|anyone|anybody|the owner|the boss|"
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
        "the message asks the operator to be something else than it is",
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
        "the context that was handed along holds instructions to the operator",
        _context_holds_commands,
    ),
)
