"""Two ways in which a translation says the opposite: terms that changed places, and
a negation that was lost."""

import re

_TERM = re.compile(r":term:`(?:[^`<]*<)?([^`>]+?)>?`")
_NOT = re.compile(r"\b(?:not|no|never|none|nothing|without|cannot|neither|nor)\b",
                  re.IGNORECASE)
_CHINESE_NOT = re.compile("[不没无未非勿别否除免空]")
# Code, roles and links have no meaning of their own here.
_FIXED = re.compile(r"``.+?``|:[\w:-]+:`[^`]*`|`[^`]*`_{0,2}|\{\w+\}")
# Negations that Chinese says without one.
_AFFIRMED = re.compile(r"\bnothing but\b|\bno more than\b|\bno matter\b|\bnot only\b",
                       re.IGNORECASE)


def wrong(original, translation):
    """What a message of the catalogues may have turned round."""
    before, after = _TERM.findall(original), _TERM.findall(translation)
    if sorted(before) == sorted(after) and before != after:
        yield (f"has its terms in another order ({', '.join(after)}) than the original "
               f"({', '.join(before)}): keep it, or the sentence may say the opposite")
    negation = _NOT.search(_AFFIRMED.sub(" ", _FIXED.sub(" ", original)))
    if negation and not _CHINESE_NOT.search(_FIXED.sub(" ", translation)):
        yield f"has no negation, but the original says {negation[0]!r}"
