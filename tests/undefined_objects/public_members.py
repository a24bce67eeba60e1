#!/usr/bin/env python3
"""The public functions of the library, read from its headers.

Good enough for headers in this project's format; no compiler is needed.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLOORS = (ROOT / "common", ROOT / "kernels")


@dataclass(frozen=True)
class Function:
    """A function: `Tensor::item` in `tensor.h`, or a free one."""

    name: str
    header: str
    parameters: str


def included(header):
    """The headers of the project that one includes, as paths."""
    for name in re.findall(r'^#include "fusebook/(.+)"', header.read_text(), re.M):
        for floor in FLOORS:
            if (floor / name).exists():
                yield floor / name


def headers_from(start):
    """A header and all of `common` that it brings along."""
    found = []
    waiting = [start]
    while waiting:
        header = waiting.pop()
        if header in found:
            continue
        found.append(header)
        waiting += [each for each in included(header) if FLOORS[0] in each.parents]
    return sorted(found)


def without_comments(text):
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', text)


def end_of_braces(text, begin):
    depth = 0
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError("braces do not match")


def statements(text):
    """Declarations of one scope: what is before a body or a semicolon, and the
    body or None."""
    start = at = round_depth = 0
    while at < len(text):
        char = text[at]
        round_depth += {"(": 1, ")": -1}.get(char, 0)
        if char == ":" and re.match(r"\s*(public|private|protected)$", text[start:at]):
            yield text[start:at].strip(), None
            start = at + 1
        elif char == "{" and round_depth == 0:
            end = end_of_braces(text, at)
            head = text[start:at].strip()
            following = text[end + 1 :].lstrip()[:1]
            # Braces of an initializer, of a member or in a list of them.
            if re.search(r"\)\s*:\s", head) and following in (",", "{"):
                at = end
            elif following == ";" and not re.search(r"\b(class|struct|enum)\b", head):
                at = end
            else:
                yield head, text[at + 1 : end]
                start = end + 1
                at = end
        elif char == ";" and round_depth == 0:
            if text[start:at].strip():
                yield text[start:at].strip(), None
            start = at + 1
        at += 1


def without_templates(head):
    """A declaration without its template head and its requirement."""
    while match := re.match(r"template\s*<", head):
        depth, at = 1, match.end()
        while depth:
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
        head = head[at:].strip()
    if head.startswith("requires"):
        at = head.index("(") if head[8:].lstrip().startswith("(") else None
        if at is None:
            head = re.sub(r"^requires\s+\S+\s*", "", head)
        else:
            depth, at = 1, at + 1
            while depth:
                depth += {"(": 1, ")": -1}.get(head[at], 0)
                at += 1
            head = head[at:].strip()
    return head


def function_of(head):
    """Name and parameters of a declaration, or None where it is no function."""
    head = without_templates(head)
    head = re.sub(r"\[\[[^\]]*\]\]", "", head).strip()
    head = re.sub(r"\)\s*:\s.*$", ")", head, flags=re.S)
    head = re.sub(r"^decltype\(auto\)", "auto", head)
    match = re.search(
        r"(operator\s*(?:\(\)|\[\]|[^\s\w(]+)|~?\b\w+)\s*\(", head)
    if match is None or head[: match.start()].endswith("::") or re.search(r"(?<![=!<>])=(?!=)", head[: match.start()]):
        return None
    before = head[: match.start()]
    if before.count("<") > before.count(">"):  # a member: std::function<void()> f
        return None
    return re.sub(r"\s+", "", match[1]), " ".join(head[match.end() :].split())


def functions_in(text, header, scope=""):
    access = "private" if scope and scope.endswith("!class") else "public"
    name = scope.split("!")[0]
    for head, body in statements(text):
        if head in ("public", "private", "protected"):
            access = head
            continue
        if re.match(r"namespace\s+fuse(\s|$)", head):
            yield from functions_in(body, header)
            continue
        if access != "public" or head.startswith("namespace"):
            continue
        kind = re.match(r"(class|struct)\s+(\w+)", without_templates(head))
        if kind and body is not None:
            inner = f"{name}::{kind[2]}" if name else kind[2]
            yield from functions_in(body, header, f"{inner}!{kind[1]}")
            continue
        if head.startswith("friend ") and body is not None:
            own, parameters = function_of(head)
            yield Function(own, header, parameters)
            continue
        if re.match(r"(friend|using|enum|typedef|extern|concept)\b", without_templates(head)):
            continue
        function = function_of(head)
        if function is None:
            continue
        own, parameters = function
        if own.startswith("~") or re.search(r"=\s*(default|delete)\s*$", head):
            continue
        if re.match(r"(FUSE|OP|MOVE)", own):
            continue
        # Copies, moves and assignments leave nothing to call.
        inner = name.rpartition("::")[2]
        if own == "operator=" or (own == inner and re.match(
                rf"(const )?{own}&", parameters)):
            continue
        yield Function(f"{name}::{own}" if name else own, header, parameters)


def public_functions(header):
    text = without_comments(header.read_text())
    return list(functions_in(text, header.name))


if __name__ == "__main__":
    for path in headers_from(ROOT / "common" / "fusebook.h"):
        for function in public_functions(path):
            print(path.relative_to(ROOT), function.name, "(" + function.parameters)
