"""Options that pages give to a command are options of that command.

`./fusebook COMMAND --option` anywhere, each row of the tables of commands in
docs/commands.md, and what `./fusebook help` says, are compared with the script of the
command (its list in `unknown ... --a --b`), the options that samples were captured
with, and the benchmark. In the rows and in the help, an option that a command takes
is named, too.
"""

import json
import re
from dataclasses import dataclass
from functools import cache

from .errors import BookError, errors_in

PAGE = "docs/commands.md"
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
_REFUSED = re.compile(r"\bunknown \"\w+ option\" \"\$1\"((?:[\s\\]+--[a-z-]+)*)")
_ROW = re.compile(r"^\| `([a-z]+)\b[^`]*`.*$", re.M)
_SENTENCE = re.compile(r"^Every (command|recipe) takes (.*?)(?:\.\s|:\n|, which)",
                       re.S | re.M)
_CALL = re.compile(r"\./fusebook ([a-z]+)\b([^`\n#&|;)]*)")
_HELP = re.compile(r"^  ([a-z]+)\b(.*\n(?:    .*\n)*)", re.M)
_HELP_OF_ALL = re.compile(r"^options of every command:\n((?:  .*\n)+)", re.M)
_OWN = re.compile(r'\{"([a-z][a-z-]*)",\s*[-\d"]')
_TAKEN = re.compile(r"^\s+--([a-z][a-z-]*)\)$", re.M)
_OF_SAMPLE = re.compile(r'"options": (\{[^}]*\})')
_HARNESS = re.compile(r'^\s+app, "([a-z-]+)"', re.M)


@dataclass(frozen=True)
class Known:
    """What options there are: of all commands, of each, of each recipe."""

    of_all: frozenset
    of_recipes: frozenset
    commands: dict
    recipes: dict

    def of(self, command, words=()):
        """Of one call, with its words."""
        found = self.of_all | self.commands[command]
        for recipe in self.recipes.keys() & set(words):
            found |= self.recipes[recipe]
        return found


@cache
def known(root):
    entry = (root / "fusebook").read_text(encoding="utf-8")
    loop = entry.partition("while [")[2].partition("\ndone")[0]
    of_all = frozenset(re.findall(r"--([a-z-]+)(?=[ )=|])", loop))
    harness = (root / "common/harness/options.cpp").read_text(encoding="utf-8")
    recipes = frozenset(_HARNESS.findall(harness)) | {"help"}
    bench = (root / "tests/bench/bench.cpp").read_text(encoding="utf-8")
    commands = {"help": frozenset()}
    for path in sorted((root / "tools").glob("*.sh")):
        text = path.read_text(encoding="utf-8")
        commands[path.stem] = frozenset(
            _OPTION.findall(" ".join(_REFUSED.findall(text))))
    for name, own in (("run", recipes), ("bench", recipes | set(_OWN.findall(bench)))):
        script = (root / f"tools/{name}.sh").read_text(encoding="utf-8")
        commands[name] |= own | set(_TAKEN.findall(script))
    return Known(of_all, recipes, commands,
                 {path.stem: frozenset(json.loads(_OF_SAMPLE.search(
                     path.read_text(encoding="utf-8"))[1]))
                  for path in (root / "docs/samples/cpu").glob("*.json")})


def in_prose(book, text):
    """Options of other commands, in calls that one of prose.py's texts has."""
    return text.errors(_calls(book, text.whole))


def in_markdown(book, show, text):
    found = list(_calls(book, text))
    if show == PAGE:
        found += [*_rows(book, text), *_sentences(book, text)]
    yield from errors_in(show, text, found)


def of_help(book, text):
    """What `./fusebook help` says, which stands in `fusebook` itself."""
    said = {}
    for match in _HELP.finditer(text.partition("options of every command")[0]):
        yield from _foreign(book, match[1], match[2], "fusebook", text,
                            match.start())
        said.setdefault(match[1], []).append((match[2], match.start()))
    for command, places in said.items():
        yield from _lacking(book, command, places, "fusebook", text)
    match = _HELP_OF_ALL.search(text)
    if set(_OPTION.findall(match[1])) != known(book.root).of_all:
        yield BookError("'options of every command' are not those that it takes",
                        "fusebook", text.count("\n", 0, match.start()) + 1)


def _foreign(book, command, words, show, text, start):
    for option in _OPTION.findall(words):
        if option not in known(book.root).of(command):
            yield BookError(_not_of(command, option), show,
                            text.count("\n", 0, start) + 1)


def _lacking(book, command, places, show, text):
    said = set(_OPTION.findall(" ".join(words for words, _ in places)))
    own = known(book.root).commands.get(command, set())
    if command in ("run", "bench"):
        return  # they have a help of their own
    for option in sorted(own - said):
        yield BookError(f"does not say that {command} takes --{option}", show,
                        text.count("\n", 0, places[0][1]) + 1)


def _not_of(command, option):
    return (f"'--{option}' is not an option of './fusebook {command}': say which "
            "command takes it")


def _calls(book, text):
    all_known = known(book.root)
    for match in _CALL.finditer(text):
        if match[1] in all_known.commands and match[1] != "test":
            for option in _OPTION.findall(match[2]):
                if option not in all_known.of(match[1], match[2].split()):
                    yield match.start(), _not_of(match[1], option)


def _rows(book, text):
    """The table of commands: what each row says, and what none says."""
    all_known, said = known(book.root), {}
    for match in _ROW.finditer(text):
        command = match[1]
        if command not in all_known.commands or command == "test":
            continue
        said.setdefault(command, [match.start(), set()])
        for literal in re.findall(r"`([^`]*)`", match[0]):
            owner = literal.split()[0] if literal.split()[:1] and (
                literal.split()[0] in all_known.commands) else command
            for option in _OPTION.findall(literal):
                said[command][1].add(option)
                if option not in all_known.of(owner):
                    yield match.start(), _not_of(owner, option)
    for command in sorted(all_known.commands.keys() - {"help", "test", "run",
                                                       "bench"}):
        start, options = said.get(command, (0, set()))
        for option in sorted(all_known.commands[command] - options):
            yield start, f"does not say that {command} takes --{option}"


def _sentences(book, text):
    """What every command takes, and every recipe."""
    all_known = known(book.root)
    wanted = {"command": all_known.of_all, "recipe": all_known.of_recipes}
    for match in _SENTENCE.finditer(text):
        said = set(_OPTION.findall(match[2]))
        for option in sorted(said - wanted[match[1]]):
            yield match.start(), f"not every {match[1]} takes --{option}"
        for option in sorted(wanted[match[1]] - said):
            yield (match.start(),
                   f"does not say that every {match[1]} takes --{option}")
