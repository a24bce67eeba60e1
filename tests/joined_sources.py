"""Sources that clang-tidy reads together, since most of its time goes into the
headers that they share.

The text of each source stands behind the includes of all. It is pasted, not
included: the analyzer follows the paths through the functions of the main file
alone. Suites of tests stand in a namespace of their own; sources of a room are
written to share one. Where the joined source is clean, each of its parts is;
where it is not, the parts are checked in halves, then one by one, so that
findings name the file they are in.
"""

import re
import shlex

# What depends on the order of includes, would reach the next source, or may be
# there once.
ALONE = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|define|undef|pragma)\b"
                   r"|^int main\("
                   r"|\boperator (?:new|delete)\b", re.MULTILINE)
# What cannot stand in a namespace.
OUTSIDE = re.compile(r"^namespace \w"
                     r"|^extern\b"
                     r"|^template <>", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"][^>"]+[>"]).*$', re.MULTILINE)
# A joined source is clang-tidy's own process, and needs memory for all of it.
MOST = 16
FEWEST = 2


def is_suite(path):
    return path.stem.endswith("_test")


def can_be_joined(path, text):
    """Whether a source means the same behind the includes of others."""
    names = INCLUDE.findall(text)
    return (len(names) == len(set(names)) and not ALONE.search(text) and
            not (is_suite(path) and OUTSIDE.search(text)))


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
    """Lists of sources that are compiled alike, and their options.

    commands: the compile command of each source
    """
    alike = {}
    for source, command in sorted(commands.items()):
        if can_be_joined(source, source.read_text(encoding="utf-8")):
            # What is no suite shares its namespaces with its own room alone.
            room = "" if is_suite(source) else str(source.parent)
            key = (room, options(command, source))
            alike.setdefault(key, []).append(source)
    found = []
    for (_, words), files in alike.items():
        for first in range(0, len(files), MOST):
            part = files[first:first + MOST]
            if len(part) >= FEWEST:
                folders = sorted({str(path.parent) for path in part})
                quoted = [f"-iquote{folder}" for folder in folders]
                found.append((part, [*words, *quoted]))
    return found


def halves(group):
    """A group in two, or nothing where its parts are to be read one by one."""
    files, words = group
    middle = len(files) // 2
    parts = [files[:middle], files[middle:]]
    return [(part, words) for part in parts if len(part) >= FEWEST]


def joined(files):
    """The source that stands for all of them."""
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    includes = {name: None for text in texts.values()
                for name in INCLUDE.findall(text)}
    lines = [f"#include {name}" for name in includes]
    for number, (path, text) in enumerate(texts.items()):
        body = [f'#line 1 "{path}"', INCLUDE.sub("", text)]
        lines += ([f"namespace joined_{number} {{", *body, "}"]
                  if is_suite(path) else body)
    return "\n".join(lines) + "\n"
