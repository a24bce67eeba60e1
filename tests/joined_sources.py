"""Sources that clang-tidy reads together and the compiler compiles together, since
most of their time goes into the headers that these share.

    python joined_sources.py groups MOST SOURCE...
    python joined_sources.py join OUT SOURCE...

`groups` prints lines of sources to be joined, with semicolons between them, at most
MOST in each; those that must be compiled by themselves are not among them. `join`
writes the source that stands for several into OUT; if they have changed so that they
can no longer be joined, it touches the file groups.stamp beside OUT, which makes the
next build look for other groups.

The text of each source stands behind the includes of all. It is pasted, not
included: the analyzer follows the paths through the functions of the main file
alone. Suites of tests and programs stand in a namespace of their own; all other
sources share one, where no name is declared twice. Where the joined source is
clean, each of its parts is; where it is not, the parts are checked in halves, then
one by one, so that findings name the file they are in.
"""

import functools
import pathlib
import re
import shlex
import sys

# What would reach the next source, or may be there once.
ALONE = re.compile(r"^\s*#\s*pragma\b"
                   r"|\boperator (?:new|delete)\b", re.MULTILINE)
MAIN = re.compile(r"^int main\(", re.MULTILINE)
DIRECTIVE = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|define)\b", re.MULTILINE)
CONDITION = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b(.*)$", re.MULTILINE)
MACRO = re.compile(r"^\s*#\s*(define|undef)\s+(\w+)", re.MULTILINE)
# What cannot stand in a namespace.
OUTSIDE = re.compile(r"^namespace \w"
                     r"|^extern\b"
                     r"|^template <>", re.MULTILINE)
# What is declared at the beginning of a line: a type, or what stands in front of
# parentheses, a value, a brace or a semicolon.
DECLARED = re.compile(r"^(?!using |namespace )"
                      r"(?:(?:struct|class|enum class|enum|union) (\w+)"
                      r"|[A-Za-z][\w:<>&*, ]*?[ *&](\w+)(?:\[\w*\])?[({;]"
                      r"|[A-Za-z][\w:<>&*, ]*?[ *&](\w+)(?:\[\w*\])? =)"
                      r"|^using (\w+) =",
                      re.MULTILINE)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"][^>"]+[>"]).*$', re.MULTILINE)
# Where the headers of a room are.
ROOM = re.compile(r"(-I.*/rooms/)[a-z_]+")
# A joined source is clang-tidy's own process, and needs memory for all of it.
MOST = 32
FEWEST = 2


def has_own_namespace(path, text):
    """Whether a source is a suite or a program: nothing else needs its names."""
    return path.stem.endswith("_test") or bool(MAIN.search(text))


def changes_macros(text):
    """Whether behind a source other macros are defined than before it."""
    left = set()
    for word, name in MACRO.findall(text):
        if word == "define":
            left.add(name)
        elif name in left:
            left.remove(name)
        else:
            return True
    return bool(left)


def includes_late(text):
    """Whether an include stands behind what may change it, or leave it out."""
    directive = DIRECTIVE.search(text)
    return directive is not None and bool(INCLUDE.search(text, directive.end()))


def asks_for_macros(text):
    """Whether a condition depends on macros that a neighbour's headers may define:
    others than the compiler's and the build's."""
    return any(not name.startswith(("__", "FUSEBOOK_"))
               for line in CONDITION.findall(text)
               for name in re.findall(r"[A-Za-z_]\w*", line) if name != "defined")


def can_be_joined(path, text):
    """Whether a source means the same behind the includes of others."""
    names = INCLUDE.findall(text)
    return (len(names) == len(set(names)) and not ALONE.search(text) and
            not changes_macros(text) and not includes_late(text) and
            not asks_for_macros(text) and
            not (has_own_namespace(path, text) and OUTSIDE.search(text)))


def options(command, source):
    """A compile command without the compiler, the files and what concerns only the
    code that it makes."""
    words = shlex.split(command)[1:]
    kept = []
    skip = False
    for word in words:
        if (skip or word in ("-c", "-fPIC", "-fPIE", str(source)) or
                word.startswith(("-O", "-fmacro-prefix-map="))):
            skip = False
        elif word == "-o":
            skip = True
        else:
            kept.append(word)
    return tuple(kept)


def names_of(text):
    """What a source declares outside of types and functions."""
    return {name for match in DECLARED.finditer(text)
            for name in match.groups() if name}


class Part:
    """Sources to be joined, all names that they declare, and the headers they see."""

    def __init__(self):
        self.files = []
        self.names = set()
        self.headers = set()

    def has_room_for(self, source, most):
        return (len(self.files) < most and not self.names & source.names and
                not source.names & names_in(self.headers - source.headers) and
                not self.names & names_in(source.headers - self.headers))

    def add(self, source):
        self.files.append(source.path)
        self.names |= source.names
        self.headers |= source.headers


class Source:
    """A source to be joined, the names that it declares for all of them, and the
    headers that it includes: no other source may declare a name of theirs."""

    def __init__(self, path, text, own, headers):
        self.path = path
        self.names = set() if own else names_of(text)
        self.headers = frozenset() if own else headers


@functools.cache
def names_in_one(header):
    return names_of(header.read_text(encoding="utf-8"))


def names_in(headers):
    return set().union(*map(names_in_one, headers))


def add_to_one(parts, source, most):
    """To the first part with room for a source, where no name is declared twice."""
    for part in parts:
        if part.has_room_for(source, most):
            return part.add(source)
    parts.append(Part())
    return parts[-1].add(source)


def lists_of_alike(texts, key, most, headers_of=lambda _: frozenset()):
    """Sources that can be joined: the key of each list, and the list.

    texts:      the text of each source
    key:        of a source, and whether it has a namespace of its own
    headers_of: the project's headers that a source includes, where it may be joined
                with sources that include others
    """
    alike = {}
    for path, text in texts.items():
        if can_be_joined(path, text):
            own = has_own_namespace(path, text)
            source = Source(path, text, own, headers_of(path))
            add_to_one(alike.setdefault(key(path, own), []), source, most)
    return [(name, part.files) for name, parts in alike.items() for part in parts
            if len(part.files) >= FEWEST]


def texts_of(sources):
    return {path: path.read_text(encoding="utf-8") for path in sources}


def with_all_rooms(words):
    """The options, but with the headers of all rooms in place of those that a source
    may include, which the compiler checks: no two rooms have a header of one name."""
    kept = []
    for word in words:
        room = ROOM.fullmatch(word)
        word = f"{room[1]}all" if room else word
        if not room or word not in kept:
            kept.append(word)
    return tuple(kept)


def groups(commands, headers_of=lambda _: frozenset()):
    """Lists of sources that are compiled alike, and their options.

    commands:   the compile command of each source
    headers_of: the project's headers that a source includes
    """
    def key(source, own):
        settings = next((folder for folder in source.parents
                         if (folder / ".clang-tidy").is_file()), None)
        return own, settings, with_all_rooms(options(commands[source], source))

    found = []
    for (*_, words), files in lists_of_alike(texts_of(sorted(commands)), key, MOST,
                                            headers_of):
        folders = sorted({str(path.parent) for path in files})
        found.append((files, [*words, *(f"-iquote{folder}" for folder in folders)]))
    return found


def halves(group):
    """A group in two, or nothing where its parts are to be read one by one."""
    files, words = group
    middle = len(files) // 2
    parts = [files[:middle], files[middle:]]
    return [(part, words) for part in parts if len(part) >= FEWEST]


def joined(files):
    """The source that stands for all of them."""
    texts = texts_of(files)
    includes = {name: None for text in texts.values()
                for name in INCLUDE.findall(text)}
    lines = [f"#include {name}" for name in includes]
    for number, (path, text) in enumerate(texts.items()):
        body = [f'#line 1 "{path}"', INCLUDE.sub("", text)]
        lines += ([f"namespace joined_{number} {{", *body, "}"]
                  if has_own_namespace(path, text) else body)
    return "\n".join(lines) + "\n"


def compiled_together(sources, most):
    """Groups of sources of one program, with the same options, to be joined."""
    texts = {path: text for path, text in texts_of(sources).items()
             if not MAIN.search(text)}
    return [files for _, files in lists_of_alike(texts, lambda _, own: own, most)]


def join(out, files):
    """Writes what stands for all of these into `out`."""
    if compiled_together(files, len(files)) != [files]:
        (out.parent / "groups.stamp").touch()
        sys.exit("these can no longer be compiled together, since they change macros, "
                 "declare what cannot stand in a namespace, or share a name: "
                 f"{', '.join(path.name for path in files)}. Build again, and others "
                 "will be")
    out.parent.mkdir(parents=True, exist_ok=True)
    text = joined(files)
    # What depends on it is compiled again only if it differs.
    if not out.is_file() or out.read_text(encoding="utf-8") != text:
        out.write_text(text, encoding="utf-8")


def main(arguments):
    match arguments:
        case ["groups", most, *names] if most.isdigit():
            for part in compiled_together(map(pathlib.Path, names), int(most)):
                print(";".join(map(str, part)))
        case ["join", out, *names] if names:
            join(pathlib.Path(out), [pathlib.Path(name) for name in names])
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
