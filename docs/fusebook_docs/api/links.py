"""Which words of C++ code are names of the reference.

Code is not compiled here: a word is taken for a public name where nothing else
can be meant. What the page declares itself (`Adam opt`, `auto step`) is its own,
a member is known by its name alone where one class has it, and `.lr` between
braces is an option.
"""

import re

TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|->|::|&&|\S")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NOT_TYPES = {
    "return", "new", "delete", "throw", "else", "case", "goto", "using",
    "co_return", "co_yield", "co_await", "operator", "if", "while", "for",
    "switch", "do", "typename", "template", "namespace", "include", "public",
    "private", "protected", "const", "static", "constexpr", "inline"}
_OPERATION = re.compile(r"foreach_(\w+?)_?$")


class Index:
    """Names and where they lead. `operations` lead to the page of operations."""

    def __init__(self, names, operations=()):
        self.tops = {name for name in names if "::" not in name}
        self.names = set(names)
        self.operations = set(operations)
        members = {}
        for name in self.names - self.tops:
            members.setdefault(name.rsplit("::", 1)[1], set()).add(name)
        self.members = {last: found.pop() for last, found in members.items()
                        if len(found) == 1}


def declared(tokens):
    """Words that code gives a meaning of its own."""
    found = set()
    for before, word, after in zip(["", *tokens], tokens, [*tokens[1:], ""]):
        if not _WORD.fullmatch(word) or before in _NOT_TYPES:
            continue
        if _WORD.fullmatch(before) and after in ("(", "=", ";", ",", ")", "{",
                                                 "[", ":"):
            found.add(word)
        elif before in ("&", "&&", "*", ">") and after in ("=", ",", ")", ";",
                                                           ":"):
            found.add(word)
    return found


def resolve(tokens, index, own=frozenset()):
    """The position of each word that is a name -> that name, or `op-NAME`."""
    found = {}
    for at, word in enumerate(tokens):
        if _WORD.fullmatch(word):
            name = _name(tokens, at, word, index, own)
            if name:
                found[at] = name
    return found


def _name(tokens, at, word, index, own):
    before = tokens[at - 1] if at else ""
    after = tokens[at + 1] if at + 1 < len(tokens) else ""
    if before in (".", "->"):
        is_option = at < 2 or tokens[at - 2] in ("{", ",", "(")
        return None if is_option else index.members.get(word)
    if before == "::":
        owner = tokens[at - 2] if at > 1 else ""
        if owner != "fuse":
            full = f"{owner}::{word}"
            return full if full in index.names else None
    elif word in own:
        return None
    if word in index.tops:
        is_call = after in ("(", "<")
        return word if is_call or word[0].isupper() or "_" in word else None
    operation = _OPERATION.match(word)
    if operation and operation[1] in index.operations:
        return f"op-{operation[1]}"
    if word in index.operations and after == "(":
        return f"op-{word}"
    return None


def used(source, index):
    """Top-level names that a program uses; `source` has no comments."""
    tokens = TOKEN.findall(source)
    own = declared(tokens)
    return {name.split("::")[0] for name in resolve(tokens, index, own).values()}
