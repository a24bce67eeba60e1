"""Test suites that clang-tidy reads together, since most of its time goes into
the headers that they share.

Each suite stands in a namespace of its own behind the includes of all. Where the
joined source is clean, each of its suites is; where it is not, the suites are
checked one by one, so that findings name the file they are in.
"""

import re
import shlex

# What cannot stand in a namespace, depends on the order of includes, or would
# reach the next suite.
ALONE = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|define|undef|pragma)\b"
                   r"|^namespace \w"
                   r"|^extern\b"
                   r"|^int main\("
                   r"|\boperator (?:new|delete)\b"
                   r"|^template <>", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"][^>"]+[>"])', re.MULTILINE)
# A joined source is clang-tidy's own process, and needs memory for all of it.
MOST = 16
FEWEST = 3


def can_be_joined(text):
    """Whether a suite means the same behind the includes of others."""
    names = INCLUDE.findall(text)
    return len(names) == len(set(names)) and not ALONE.search(text)


def options(command, source):
    """A compile command without the compiler, the files and the optimization."""
    words = shlex.split(command)[1:]
    kept = []
    skip = False
    for word in words:
        if skip or word in ("-c", str(source)) or word.startswith("-O"):
            skip = False
        elif word == "-o":
            skip = True
        else:
            kept.append(word)
    return tuple(kept)


def groups(commands):
    """Lists of suites that are compiled alike, and their options.

    commands: the compile command of each source
    """
    alike = {}
    for source, command in sorted(commands.items()):
        if can_be_joined(source.read_text(encoding="utf-8")):
            alike.setdefault(options(command, source), []).append(source)
    found = []
    for words, files in alike.items():
        for first in range(0, len(files), MOST):
            part = files[first:first + MOST]
            if len(part) >= FEWEST:
                folders = sorted({str(path.parent) for path in part})
                quoted = [f"-iquote{folder}" for folder in folders]
                found.append((part, [*words, *quoted]))
    return found


def joined(files):
    """The source that stands for all of them."""
    includes = {name: None for path in files
                for name in INCLUDE.findall(path.read_text(encoding="utf-8"))}
    lines = [f"#include {name}" for name in includes]
    for number, path in enumerate(files):
        lines += [f"namespace joined_{number} {{",
                  f'#include "{path}"  // NOLINT', "}"]
    return "\n".join(lines) + "\n"
