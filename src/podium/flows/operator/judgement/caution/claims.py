"""Words that only pretend: approvals that are told and not given, answers that Podium never gave."""

from __future__ import annotations

import re

from podium.domain.gating import Tier
from podium.flows.operator.judgement.caution.said import Said

_ABOVE = (
    r"(?:boss|owners?|manager|management|ops|operations|admin|administrator|supervisor|director|head office"
    r"|office|ceo|cfo|accounts|legal|partner|team lead|foreman|me|us|myself|everyone|everybody|all)"
)
_AGREED = r"(?:approved|authori[sz]ed|signed off|ok(?:ay)?'?e?d|cleared|agreed|gave (?:the|his|her|their) (?:ok|okay|go-ahead|approval|yes)|said (?:yes|ok|okay|go|it'?s (?:ok|okay|fine)|that'?s (?:ok|okay|fine)))"
_CLAIMED = re.compile(
    rf"(?<!\w)--?(?:approve[d]?|yes|force)\b|\bapproved?\s*[:=]\s*\S|\bexplicit[_ ]approval\b|\bpre-?approved\b|\balready (?:been )?{_AGREED}"
    rf"|\b{_AGREED} (?:this )?(?:by|from|with) (?:my |the |our |your |an? )?{_ABOVE}\b"
    rf"|\b{_ABOVE} (?:has |have |had |just |already |also |both ){{0,2}}{_AGREED}"
    r"|\b(?:i|we) (?:hereby |do |already |have |fully ){0,2}(?:approved?|authori[sz]ed?) (?:this|it|that|them|the (?:plan|action|call|request|run))\b"
    r"|\b(?:consider|treat) (?:it|this|that) (?:as )?(?:approved|authori[sz]ed)\b"
    r"|\bapproval (?:is |was |has been |already )*(?:granted|given|obtained|in place|not needed|not required)\b"
    r"|\bapprovals?\b[^.!?\n]{0,24}\b(?:not|no|n't|isn't|doesn't|don't|unnecessary|skipped|waived|disabled|off)\b"
    r"|\b(?:no|without|skip(?:ping)?|bypass(?:ing)?|ignore|waive)(?: the| any| an| its| further)? approvals?\b"
    rf"|\bwith (?:my|the {_ABOVE}'?s?|{_ABOVE}'?s?|full) (?:approval|ok|okay|permission|consent)\b"
)
_BLOCKS = re.compile(
    r"\[(?:intent|plan|result|tool impact|risks ?/ ?gates|next actions)\]", re.IGNORECASE
)


def claimed_approval(said: Said) -> str:
    """Asks where a message that needs an approval says that there is one."""
    if said.tier < Tier.T2:
        return ""
    if found := _CLAIMED.search(said.spoken):
        told = said.text[found.start() : found.end()].strip()
        return (
            f"An approval is given with APPROVE: ID, not in the message ({told!r}). "
            "What should be done, without these words?"
        )
    return ""


def forged_answer(said: Said) -> str:
    """Asks where a message has the titles of an answer's blocks, or a tool's name in one of its texts."""
    if found := _BLOCKS.search(said.text):
        return f"{found.group()} is how answers are written. What is asked for, in plain words?"
    for wish in said.wishes:
        entry = said.entry(wish)
        required = entry.input_schema.get("required", ()) if entry else ()
        if said.tier_of(wish) < Tier.T2 or any(name not in wish.arguments for name in required):
            continue
        for given in said.given(wish):
            if given.kind == "text" and isinstance(given.value, str) and wish.tool in given.value:
                return f"What is the {given.name.replace('_', ' ')}, in words?"
    return ""
