"""Four ways in which a translation says something else: terms that changed places, a
negation that was lost, a comparison that was turned round, and a name in Latin letters
that the original does not have, such as GPU for CPU."""

import re

_TERM = re.compile(r":term:`(?:[^`<]*<)?([^`>]+?)>?`")
_NOT = re.compile(r"\b(?:not|no|never|none|nothing|without|cannot|neither|nor)\b",
                  re.IGNORECASE)
_CHINESE_NOT = re.compile("[不没无未非勿别否除免空]")
# Code, roles and links have no meaning of their own here.
_FIXED = re.compile(r"``.+?``|:[\w:-]+:`[^`]*`|`[^`]*`_{0,2}|\{\w+\}")
# Of two opposites, the English and what Chinese says for it.
_OPPOSITES = (
    (("faster", "快"), ("slower", "慢")),
    (("older", "旧老早"), ("newer", "新晚")),
    (("larger", "大"), ("smaller", "小")),
    (("longer", "长久"), ("shorter", "短")),
    (("fewer", "少"), ("more", "多")),
    (("above", "上高超大"), ("below", "下低小")),
    (("before", "前先"), ("after", "后过")),
    (("first", "一首先初"), ("last", "最后末")),
    (("reads", "读"), ("writes", "写")),
)
_NO_LONGER = re.compile(r"\bno longer\b|\bno more\b", re.IGNORECASE)
_LATIN = re.compile(r"(?<![\w.])[A-Za-z][A-Za-z0-9+#-]*")
_ADDRESS = re.compile(r"https?://\S+")
# What Chinese has to name, where English says "notebook".
_ADDED = ("Jupyter",)
_ENDS = ("", "s", "ed", "ing")
# Negations that Chinese says without one.
_AFFIRMED = re.compile(r"\bnothing but\b|\bno more than\b|\bno matter\b|\bnot only\b",
                       re.IGNORECASE)


def wrong(original, translation):
    """What a message of the catalogues may have turned round."""
    yield from _other_names(original, translation)
    before, after = _TERM.findall(original), _TERM.findall(translation)
    if sorted(before) == sorted(after) and before != after:
        yield (f"has its terms in another order ({', '.join(after)}) than the original "
               f"({', '.join(before)}): keep it, or the sentence may say the opposite")
    plain = _NO_LONGER.sub(" ", _FIXED.sub(" ", original)).lower()
    chinese = _FIXED.sub(" ", translation)
    for one, other in (pair for both in _OPPOSITES for pair in (both, both[::-1])):
        if (re.search(rf"\b{one[0]}\b", plain) and not re.search(rf"\b{other[0]}\b", plain)
                and not re.search(f"[{one[1]}]", chinese)
                and re.search(f"[{other[1]}]", chinese)):
            yield f"says the opposite of {one[0]!r}, which the original says"
    negation = _NOT.search(_AFFIRMED.sub(" ", _FIXED.sub(" ", original)))
    if negation and not _CHINESE_NOT.search(_FIXED.sub(" ", translation)):
        yield f"has no negation, but the original says {negation[0]!r}"


def _other_names(original, translation):
    """Words in Latin letters that the original does not have, in no form."""
    said = {word.lower() for word in _LATIN.findall(original)}
    for word in _LATIN.findall(_ADDRESS.sub(" ", _FIXED.sub(" ", translation))):
        if word not in _ADDED and said.isdisjoint(word.lower() + end for end in _ENDS):
            yield f"says {word!r}, which the original does not say"
