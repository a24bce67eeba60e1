"""The one place that knows what a record and a sample look like.

A *record* is what a recipe writes with `--record FILE`. A *sample* is a
record that was committed: `docs/samples/<device>/<recipe>.txt` holds the text
that must stay the same, step by step, and `<recipe>.json` what may vary and
where it was captured. Where a value varies, the text has `@{name}`; a literal
`@{` is written `@@{`. A digest over all of it is made at capture.
"""

import hashlib
import json
import os
import re
import tempfile
from dataclasses import dataclass, replace

from .book import capture_command
from .errors import BookError
from .values import Value, check_ratios, wrongly_shown
from .values import read as read_value

FORMAT = 1
HEADING = "== "
_NO_NEWLINE = "\\ no newline at the end"
_PLACEHOLDER = re.compile(r"@@\{|@\{([A-Za-z_][A-Za-z0-9_.-]*)\}|@\{")
_PROVENANCE = ("device", "compiler", "date")
_DATE = re.compile(r"20\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")


@dataclass(frozen=True)
class Step:
    """What one step printed. Text before the first step has title ""."""

    title: str
    text: str


@dataclass(frozen=True)
class Sample:
    """A record or a sample, read and checked for form."""

    recipe: str
    device: str
    options: dict
    provenance: dict
    steps: tuple[Step, ...]
    values: dict[str, Value]
    source_sha256: str
    kernels: tuple[str, ...]  # hashes of what is generated for a GPU, sorted
    gpu_code_sha256: str | None = None  # samples of a GPU have it
    exercise: str | None = None

    @property
    def titles(self):
        return [step.title for step in self.steps if step.title]

    def text_of(self, title):
        """The text of a step, or None when there is no such step."""
        return next((s.text for s in self.steps if s.title == title), None)


def pieces(text):
    """Splits text into strings and, for placeholders, 1-tuples of a name."""
    found, at, literal = [], 0, ""
    for match in _PLACEHOLDER.finditer(text):
        literal += text[at : match.start()]
        at = match.end()
        if match[0] == "@@{":
            literal += "@{"
            continue
        if match[1] is None:
            raise BookError(f"a broken placeholder at "
                            f"{text[match.start():][:20]!r}")
        if literal:
            found.append(literal)
        found.append((match[1],))
        literal = ""
    literal += text[at:]
    return [*found, literal] if literal else found


def names_in(text):
    return [piece[0] for piece in pieces(text) if isinstance(piece, tuple)]


def filled(text, values):
    """The text as a reader sees it."""
    return "".join(piece if isinstance(piece, str) else values[piece[0]].shown
                   for piece in pieces(text))


def parse_json(data, path):
    """Parses JSON from bytes, with the place in the error."""
    try:
        return json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BookError(f"not UTF-8: {error.reason}", path) from None
    except json.JSONDecodeError as error:
        raise BookError(f"damaged JSON: {error.msg}", path,
                        error.lineno) from None


def from_record(record, path, *, source_sha256, gpu_code_sha256=None,
                exercise=None):
    """Checks the form of a record; `path` is for messages."""
    head = _head(record, path)
    steps = tuple(_step(raw, path) for raw in _get(record, "steps", list, path))
    if steps and steps[0] == Step("", ""):
        steps = steps[1:]
    if any(step.title == "" for step in steps[1:]):
        raise BookError("a step without a title", path)
    sample = Sample(steps=steps, exercise=exercise,
                    source_sha256=source_sha256,
                    gpu_code_sha256=gpu_code_sha256, **head)
    check_ratios(sample.values, path)
    return _whole(sample, path)


def _head(raw, path):
    """What a record and the .json of a sample have in common."""
    if not isinstance(raw, dict):
        raise BookError("must be a JSON object", path)
    form = _get(raw, "format", int, path)
    if form != FORMAT:
        raise BookError(f"has format {form}; expected {FORMAT}", path)
    provenance = _get(raw, "provenance", dict, path)
    for name in _PROVENANCE:
        if not isinstance(provenance.get(name), str) or not provenance[name]:
            raise BookError(f"provenance lacks {name!r}", path)
    if not _DATE.fullmatch(provenance["date"]):
        raise BookError(f"provenance has the date {provenance['date']!r}, not one such as "
                        "2026-11-21", path)
    values = _get(raw, "values", dict, path)
    return {
        "recipe": _get(raw, "recipe", str, path),
        "device": _get(raw, "device", str, path),
        "options": _get(raw, "options", dict, path),
        "provenance": provenance,
        "values": {name: read_value(name, v, path)
                   for name, v in values.items()},
        "kernels": _kernels(raw, path),
    }


def _kernels(raw, path):
    found = _get(raw, "kernels", list, path)
    if not all(isinstance(hash, str) and hash for hash in found):
        raise BookError(f"'kernels' must be hashes, not {found!r}", path)
    return tuple(sorted(found))


def _get(raw, name, kind, path):
    if name not in raw:
        raise BookError(f"lacks {name!r}", path)
    if not isinstance(raw[name], kind) or isinstance(raw[name], bool):
        raise BookError(f"{name!r} must be {kind.__name__}, not "
                        f"{raw[name]!r}", path)
    return raw[name]


def _step(raw, path):
    if not isinstance(raw, dict):
        raise BookError("a step must be a JSON object", path)
    return Step(_get(raw, "title", str, path), _get(raw, "text", str, path))


def _whole(sample, path):
    """Checks that text and values belong together."""
    titles = [step.title for step in sample.steps]
    for title in titles:
        if titles.count(title) > 1:
            raise BookError(f"step {title!r} occurs twice", path)
    for step in sample.steps:
        try:
            names = names_in(step.text)
        except BookError as error:
            raise BookError(f"step {step.title!r}: {error.message}",
                            path) from None
        for name in names:
            if name not in sample.values:
                raise BookError(f"step {step.title!r}: placeholder "
                                f"@{{{name}}} has no value", path)
    return sample


def format_text(steps):
    """The .txt of a sample: a heading a step, and its text."""
    out = []
    for step in steps:
        if step.title:
            out.append(f"{HEADING}{step.title}\n")
        out.extend(f"{line}\n" for line in _text_lines(step.text))
    return "".join(out)


def _text_lines(text):
    if not text:
        return []
    lines = [_escaped(line) for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else [*lines, _NO_NEWLINE]


def _escaped(line):
    return f"\\{line}" if line.startswith((HEADING, "\\")) else line


def parse_text(text, path):
    """Reads the .txt of a sample back."""
    if text and not text.endswith("\n"):
        raise BookError("damaged: the last line is cut off", path)
    steps = [Step("", "")]
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        if line.startswith(HEADING):
            steps.append(Step(line[len(HEADING):], ""))
        elif line == _NO_NEWLINE:
            last = steps[-1].text.removesuffix("\n")
            steps[-1] = replace(steps[-1], text=last)
        else:
            plain = line
            if line.startswith("\\"):
                plain = line[1:]
                if not plain.startswith((HEADING, "\\")):
                    raise BookError("damaged: an unknown escape", path, number)
            steps[-1] = replace(steps[-1], text=f"{steps[-1].text}{plain}\n")
    return tuple(steps[1:] if steps[0].text == "" else steps)


def digest(document, text):
    """SHA-256 of all that the two files of a sample say.

    It tells that a sample was edited after it was captured. It does not tell a
    forger who computes it anew: what a sample says of the CPU, `verify` does.
    """
    rest = {name: v for name, v in document.items() if name != "digest"}
    whole = json.dumps([rest, text], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(whole.encode()).hexdigest()


def _untrue(sample, raw, text, data, capture):
    """(what is wrong, its line in the .json) for a sample that nobody may have
    edited."""
    for name, value in sample.values.items():
        if sample.device == "cpu" and value.unfit():
            yield f"value {name!r} {value.unfit()}", _line_of(data, name)
    for name, problem in wrongly_shown(sample.values):
        yield f"value {name!r} {problem}", _line_of(data, name)
    if raw["digest"] != digest(raw, text):
        yield ("was edited after it was captured: the digest does not match "
               "its text, values and provenance. Capture it again: "
               f"{capture} --fresh"), _line_of(data, "digest")


def _line_of(data, key):
    return data[:data.find(f'"{key}"'.encode())].count(b"\n") + 1


def load(book, device, recipe, exercise=None, problems=None):
    """Reads a sample. One that was edited since it was captured is refused, or
    `problems` gets what is wrong with it."""
    text_path, json_path = book.sample_paths(device, recipe, exercise)
    data = _read(book, json_path, device, recipe)
    raw = parse_json(data, book.show(json_path))
    show = book.show(json_path)
    head = _head(raw, show)
    for name, wanted in (("recipe", recipe), ("device", device)):
        if head[name] != wanted:
            raise BookError(f"{name!r} is {head[name]!r}; its path says "
                            f"{wanted!r}", show)
    text = _read(book, text_path, device, recipe)
    try:
        steps = parse_text(text.decode("utf-8"), book.show(text_path))
    except UnicodeDecodeError as error:
        raise BookError(f"not UTF-8: {error.reason}",
                        book.show(text_path)) from None
    sample = Sample(steps=steps, exercise=exercise,
                    source_sha256=_get(raw, "source_sha256", str, show),
                    gpu_code_sha256=raw.get("gpu_code_sha256"),
                    **head)
    sample = _whole(sample, book.show(text_path))
    check_ratios(sample.values, show)
    _get(raw, "digest", str, show)
    for message, line in _untrue(sample, raw, text.decode("utf-8"), data,
                                 capture_command(recipe, device)):
        problem = BookError(message, show, line)
        if problems is None:
            raise problem
        problems.append(problem)
    return sample


def _read(book, path, device, recipe):
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BookError(
            "missing sample; make it with: "
            f"{capture_command(recipe, device)}", book.show(path)) from None
    except OSError as error:
        raise BookError(f"cannot be read: {error.strerror}",
                        book.show(path)) from None


def store(book, sample):
    """Writes both files of a sample, or neither."""
    paths = book.sample_paths(sample.device, sample.recipe, sample.exercise)
    values = {name: v.to_json() for name, v in sorted(sample.values.items())}
    document = {
        "format": FORMAT,
        "recipe": sample.recipe,
        "exercise": sample.exercise,
        "device": sample.device,
        "source_sha256": sample.source_sha256,
        "gpu_code_sha256": sample.gpu_code_sha256,
        "kernels": list(sample.kernels),
        "options": sample.options,
        "provenance": sample.provenance,
        "values": values,
    }
    for name in ("exercise", "gpu_code_sha256"):
        if document[name] is None:
            del document[name]
    text = format_text(sample.steps)
    # As it is read back: numbers of JSON, no tuples.
    document = json.loads(json.dumps(document, allow_nan=False))
    document["digest"] = digest(document, text)
    head = json.dumps(document, indent=2, ensure_ascii=False)
    write_files({paths[0]: text, paths[1]: f"{head}\n"})
    return paths


def write_files(contents):
    """Writes every file aside first, then renames them into place."""
    staged = []
    try:
        for path, text in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.",
                                            dir=path.parent)
            staged.append((name, path))
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode("utf-8"))
                os.fchmod(file.fileno(), 0o644)
        while staged:
            os.replace(*staged[0])
            staged.pop(0)
    except OSError as error:
        path = error.filename2 or error.filename
        raise BookError(f"cannot be written: {error.strerror}",
                        path) from None
    finally:
        for name, _ in staged:
            os.unlink(name)
