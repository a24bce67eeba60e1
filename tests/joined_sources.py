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
alone. Suites of tests and programs stand in a namespace of their own, unless they
declare what cannot; sources of a room are written to share one. The compiler joins
those of one program or library. clang-tidy without its analyzer, to which it is all
one how long a text is, joins those of all rooms that are compiled alike but for the
folders of their headers. Where the joined source is clean, each of its parts counts
as clean; where it is not, the parts are checked in halves, then one by one, so that
findings name the file they are in.
"""

import itertools
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
DECLARED = re.compile(r"^(?!using |namespace )(?:\[\[\w+\]\] )?"
                      r"(?:(?:struct|class|enum class|enum|union) (\w+)"
                      r"|[A-Za-z][\w:<>&*, ]*?[ *&](\w+)(?:\[\w*\])?[({;]"
                      r"|[A-Za-z][\w:<>&*, ]*?[ *&](\w+)(?:\[\w*\])? =)"
                      r"|^using (\w+) =",
                      re.MULTILINE)
UNNAMED = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"//.*$", re.MULTILINE)
WORD = re.compile(r"[A-Za-z_]\w*")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"][^>"]+[>"]).*$', re.MULTILINE)
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


def kind_of(path, text):
    """How a source stands among others: "room", as it is; "namespace", in one; or
    "outside", as it is, since it declares what cannot stand in a namespace."""
    if not has_own_namespace(path, text):
        return "room"
    return "outside" if OUTSIDE.search(text) else "namespace"


def can_be_joined(text):
    """Whether a source means the same behind the includes of others."""
    names = INCLUDE.findall(text)
    return (len(names) == len(set(names)) and not ALONE.search(text) and
            not changes_macros(text) and not includes_late(text) and
            not asks_for_macros(text))


def options(command, source):
    """A compile command without the compiler, the files, CMake's precompiled headers
    and what concerns only the code that it makes."""
    words = shlex.split(command)[1:]
    kept = []
    skip = False
    for word, next_word in zip(words, [*words[1:], ""], strict=True):
        if (skip or word in ("-c", "-fPIC", "-fPIE", "-Winvalid-pch", str(source)) or
                word.startswith(("-O", "-fmacro-prefix-map="))):
            skip = False
        elif word == "-o" or word == "-include" and "/cmake_pch." in next_word:
            skip = True
        else:
            kept.append(word)
    return tuple(kept)


def without_folders(words):
    """Options without the folders of headers, and these with their options."""
    others, folders = [], []
    words = iter(words)
    for word in words:
        if word in ("-I", "-isystem", "-iquote"):
            folders.append((word, next(words, "")))
        elif word.startswith("-I"):
            folders.append((word,))
        else:
            others.append(word)
    return others, folders


def names_of(text):
    """What a source declares outside of types and functions."""
    return {name for match in DECLARED.finditer(text)
            for name in match.groups() if name}


class Part:
    """Sources to be joined, the names that they declare, and those that mean
    something else in the headers of others."""

    def __init__(self):
        self.files = []
        self.names = set()
        self.own = set()
        self.words = set()

    def has_room_for(self, names, own, words):
        return not (self.names & names or self.own & words or self.words & own)

    def add(self, source, names, own, words):
        self.files.append(source)
        self.names |= names
        self.own |= own
        self.words |= words


def add_to_one(parts, source, text, most):
    """To the first part with room for a source, where no name has two meanings."""
    names = names_of(text)
    own = set().union(*map(names_of, UNNAMED.findall(text)))
    words = set(WORD.findall(COMMENT.sub("", text)))
    for part in parts:
        if len(part.files) < most and part.has_room_for(names, own, words):
            break
    else:
        part = Part()
        parts.append(part)
    part.add(source, names, own, words)


def lists_of_alike(texts, key, most):
    """Sources that can be joined: the key of each list, and the list.

    texts: the text of each source
    key:   of a source and its kind
    """
    alike = {}
    for source, text in texts.items():
        if can_be_joined(text):
            kind = kind_of(source, text)
            add_to_one(alike.setdefault(key(source, kind), []), source,
                       "" if kind == "namespace" else text, most)
    return [(name, part.files) for name, parts in alike.items() for part in parts
            if len(part.files) >= FEWEST]


def texts_of(sources):
    return {path: path.read_text(encoding="utf-8") for path in sources}


def settings_of(source):
    """The folder with clang-tidy's settings for a source."""
    return next((folder for folder in source.parents
                 if (folder / ".clang-tidy").is_file()), None)


def groups(commands, *, rooms_apart=False):
    """Lists of sources that are compiled alike but for the folders of their headers,
    and their options.

    commands:    the compile command of each source
    rooms_apart: whether sources of different folders are not joined
    """
    words = {source: without_folders(options(command, source))
             for source, command in commands.items()}

    def key(source, kind):
        room = source.parent if rooms_apart and kind != "namespace" else None
        return kind, room, settings_of(source), tuple(sorted(words[source][0]))

    found = []
    for _, files in lists_of_alike(texts_of(sorted(commands)), key, MOST):
        folders = dict.fromkeys(folder for path in files for folder in words[path][1])
        found.append((files, [*words[files[0]][0], *itertools.chain(*folders)]))
    return found


def halves(group):
    """A group in two, or nothing where its parts are to be read one by one."""
    files, words = group
    middle = len(files) // 2
    parts = [files[:middle], files[middle:]]
    return [(part, words) for part in parts if len(part) >= FEWEST]


def includes_of(path, text):
    """What a source includes; its neighbours by their whole path, since in another
    folder the name may be another's."""
    for name in INCLUDE.findall(text):
        neighbour = path.parent / name.strip('"')
        yield f'"{neighbour}"' if name[0] == '"' and neighbour.is_file() else name


def joined(files):
    """The source that stands for all of them."""
    texts = texts_of(files)
    includes = dict.fromkeys(name for path, text in texts.items()
                             for name in includes_of(path, text))
    lines = [f"#include {name}" for name in includes]
    for number, (path, text) in enumerate(texts.items()):
        body = [f'#line 1 "{path}"', INCLUDE.sub("", text)]
        lines += ([f"namespace joined_{number} {{", *body, "}"]
                  if kind_of(path, text) == "namespace" else body)
    return "\n".join(lines) + "\n"


def compiled_together(sources, most):
    """Groups of sources of one program, with the same options, to be joined."""
    texts = {path: text for path, text in texts_of(sources).items()
             if not MAIN.search(text)}
    return [files for kind, files in lists_of_alike(texts, lambda _, kind: kind, most)
            if kind != "outside"]


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
