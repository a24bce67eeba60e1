"""The command line: `python3 docs/fusebook_docs COMMAND`.

Exit codes: 0 success, 1 a difference or a failed run, 2 wrong usage,
130 interrupted.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from . import (capturing, checking, claims, code_names, examples, exercises,
               front, gallery, limits, literate, measurements, new_recipe,
               patches, prose, samples)
from .book import Book, capture_command
from .errors import BookError
from .machine import kept, making, promises
from .translation import catalogues, checks, site, updating


# A kernel's text depends on no size, and the simulated GPU is slow.
_SMALL = {"layers": "2", "width": "8"}


def main(arguments=None):
    options = _parser().parse_args(arguments)
    book = Book(options.root.resolve()) if options.root else Book.here()
    try:
        return options.command(book, options)
    except BookError as error:
        print(f"fusebook: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser():
    parser = argparse.ArgumentParser(
        prog="fusebook_docs",
        description="Keeps the pages of the book consistent with its programs.",
        epilog="Exit codes: 0 success, 1 a difference or a failed run, "
               "2 wrong usage.")
    parser.add_argument("--root", type=Path, metavar="DIR",
                        help="the checkout (default: the one this file is in)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_running(commands, "verify", _verify,
                 "run a recipe and compare what it prints with its page")
    capture = _add_running(commands, "capture", _capture,
                           "run a recipe and save what it prints as its page's "
                           "output")
    capture.add_argument("--fresh", action="store_true",
                         help="write the sample even if only timings "
                              "changed")
    capture.add_argument("--as", dest="folder", metavar="NAME",
                         help="save it as the sample of this device (default: "
                              "the device's own name)")
    capture.add_argument("--samples", type=Path, metavar="DIR",
                         help="save it there (default: docs/samples)")
    capture.add_argument("--driver", metavar="TEXT",
                         help="the driver's version, for the record")
    capture.add_argument("--option", action="append", default=[],
                         metavar="WORD", help="a word for the recipe's own "
                                              "command line; may be repeated")
    _add_running(commands, "kernels", _kernels,
                 "run a small version of a recipe on a GPU or the simulator "
                 "and compare its kernels with the CPU's sample",
                 device="cuda-sim")
    machine = _add(commands, "machine-code", _machine_code,
                   "compile a recipe's kernel, and compare the texts with those "
                   "that its page shows")
    machine.add_argument("--program", required=True, type=Path, metavar="PATH",
                         help="the built recipe")
    machine.add_argument("--recipe", required=True)
    machine.add_argument("--checker", required=True, type=Path, metavar="PATH",
                         help="the built gpu_code_check")
    machine.add_argument("--write", action="store_true",
                         help="keep the texts as the page's")
    example = _add(commands, "examples", _examples,
                   "run the examples of the API reference and compare what "
                   "they print with its pages")
    example.add_argument("--program", required=True, type=Path, metavar="PATH",
                         help="the built program")
    example.add_argument("--write", action="store_true",
                         help="save what they print as the pages' output")
    front_page = _add(commands, "front", _front,
                      "compare what README.md shows of the book with the "
                      "samples")
    front_page.add_argument("--write", action="store_true",
                            help="update README.md and its picture")
    measured = _add(commands, "measurements", _measurements,
                    "keep what the benchmark measured as what its page shows")
    measured.add_argument("--json", required=True, type=Path, metavar="FILE",
                          help="what bench --json wrote")
    measured.add_argument("--again", action="append", default=[], type=Path,
                          metavar="FILE", help="the same of a single case, in "
                                               "whose place it comes")
    measured.add_argument("--command", required=True, dest="words",
                          metavar="TEXT", help="the command that measured it")
    new = _add(commands, "new", _new,
               "make a recipe that keeps every rule, to be changed")
    new.add_argument("--recipe", required=True, metavar="NAME")
    new.add_argument("--title", help="default: made from the name")
    new.add_argument("--check", action="store_true",
                     help="only say whether it can have that name and title")
    apply = _add(commands, "apply", _apply,
                 "write a recipe with the answer to an exercise applied")
    apply.add_argument("--recipe", required=True)
    apply.add_argument("--exercise", required=True)
    apply.add_argument("--out", required=True, type=Path, metavar="FILE")
    make = _add(commands, "make-patch", _make_patch,
                "make the patch of an exercise from an edited copy")
    make.add_argument("--recipe", required=True)
    make.add_argument("--exercise", required=True)
    make.add_argument("--edited", required=True, type=Path, metavar="FILE")
    rebase = _add(commands, "rebase-patch", _rebase_patch,
                  "rebase patches onto recipes that have changed around "
                  "them")
    rebase.add_argument("--recipe", help="only of this one (default: all)")
    rebase.add_argument("--exercise", help="only this one")
    rebase.add_argument("--check", action="store_true",
                        help="only list the patches that no longer apply")
    limit = _add(commands, "limits", _limits,
                 "check that recipe pages keep their limits, that their "
                 "exercises apply, and that every number in the book's prose "
                 "is quoted and true")
    limit.add_argument("--recipe", help="only this one (default: all)")
    whole = _add(commands, "site", _site,
                 "build the site in every language (needs "
                 "docs/requirements.txt)")
    whole.add_argument("--out", required=True, type=Path, metavar="DIR")
    whole.add_argument("--doctrees", required=True, type=Path, metavar="DIR",
                       help="where to keep what was read, for the next time")
    whole.add_argument("--fresh", action="store_true",
                       help="use nothing that is kept there")
    whole.add_argument("--quiet", action="store_true",
                       help="print warnings alone")
    translations = _add(commands, "translations", _translations,
                        "check the catalogues of the book's translations")
    translations.add_argument("--update", action="store_true",
                              help="first bring them to what the pages say "
                                   "(needs docs/requirements.txt)")
    listed = _add(commands, "list", _list,
                  "list recipes, or with --exercises 'recipe exercise' lines")
    listed.add_argument("--exercises", action="store_true")
    return parser


def _add(commands, name, command, text):
    parser = commands.add_parser(name, help=text,
                                 description=f"{text[0].upper()}{text[1:]}.")
    parser.set_defaults(command=command)
    return parser


def _add_running(commands, name, command, text, device="cpu"):
    parser = _add(commands, name, command, text)
    parser.add_argument("--program", required=True, type=Path, metavar="PATH",
                        help="the built recipe (or patched recipe)")
    parser.add_argument("--recipe", required=True)
    parser.add_argument("--exercise",
                        help="the exercise that the program answers")
    parser.add_argument("--device", default=device,
                        help="default: %(default)s")
    parser.add_argument("--timeout", type=float, default=300.0,
                        metavar="SECONDS", help="default: 300")
    return parser


def _front(book, options):
    stale = front.stale(book)
    if options.write:
        front.write(book)
    for path in stale:
        print(f"wrote {path}" if options.write else
              f"{path} no longer shows what was captured; run: "
              "python3 docs/fusebook_docs front --write")
    return 1 if stale and not options.write else 0


def _examples(book, options):
    if options.write:
        for path in examples.capture(book, options.program):
            print(f"wrote {path}")
        return 0
    found = list(examples.differences(book, options.program))
    for problem in found:
        print(problem)
    if found:
        print(f"If the examples are right, update the pages: "
              f"{examples.HOW}")
        return 1
    count = len(examples.read(book))
    print(f"{count} example{'' if count == 1 else 's'}, as on the pages.")
    return 0


def _machine_code(book, options):
    name = options.recipe
    made = making.make(book, name, options.program, options.checker)
    found = list(promises.broken(made))
    if options.write and not found:
        kept.store(book, made)
        print(f"{name}: its kernel is captured in "
              f"{book.show(kept.folder(book, name))}")
        return 0
    if not options.write:
        found += promises.differences(kept.load(book, name), made)
    for problem in found:
        print(f"{name}: its kernel {problem}")
    if found:
        print("If the program is right, make the page follow: "
              f"{kept.command(name)}")
        return 1
    print(f"{name}: its kernel, as on the page ({made.compiler}, {made.nvrtc}).")
    return 0


def _fresh(book, options, words=()):
    return checking.fresh(book, options.program, options.recipe,
                          options.device, options.timeout, options.exercise,
                          words)


def _name(options):
    name = checking.samples_name(options.recipe, options.exercise)
    return f"{name} ({options.device})"


def _verify(book, options):
    key = (options.device, options.recipe, options.exercise)
    edited = []
    page = samples.load(book, *key, problems=edited)
    run, found = _fresh(book, options)
    path = book.show(book.sample_paths(*key)[0])
    found += [checking.Difference("", str(problem)) for problem in edited]
    found += checking.compare(page, run, path)
    if found:
        print(f"{_name(options)}: the program and its page disagree.")
        for difference in found:
            print(f"  {difference}")
        command = capture_command(options.recipe, options.device)
        print(f"If the program is right, update the page: {command}")
        return 1
    print(f"{_name(options)}: {len(page.titles)} steps and "
          f"{len(page.values)} varying values, as on the page.")
    return 0


def _kernels(book, options):
    """What a page says of a GPU's sample rests on this."""
    page = samples.load(book, "cpu", options.recipe, options.exercise)
    words = [word for name, value in _SMALL.items() if name in page.options
             for word in (f"--{name}", value)]
    run, found = _fresh(book, options, words)
    missing = set(page.kernels) - set(run.kernels)
    if missing:
        found.append(checking.Difference(
            "", f"{len(missing)} of the {len(page.kernels)} kernels of the "
                "CPU's sample were not generated"))
    for difference in found:
        print(f"{_name(options)}: {difference}")
    if not found:
        print(f"{_name(options)}: the kernels of the CPU's sample, "
              f"{len(page.kernels)} of them.")
    return 1 if found else 0


def _capture(book, options):
    run, found = _fresh(book, options, options.option)
    found += checking.unfit(run)
    if found:
        print(f"{_name(options)}: not captured.", file=sys.stderr)
        for difference in found:
            print(f"  {difference}", file=sys.stderr)
        return 1
    if options.samples:
        book = replace(book, kept_samples=options.samples.resolve())
    run = capturing.placed(run, options.folder, options.driver)
    done = capturing.keep(book, run, fresh=options.fresh)
    print(f"{_name(options)}: {done}")
    return 0


def _measurements(book, options):
    result = _json_of(options.json)
    for path in options.again:
        result = measurements.merged(result, _json_of(path))
    measurements.store(book, result, options.words)
    print(f"captured in {book.show(measurements.path(book))}")
    return 0


def _json_of(path):
    try:
        return samples.parse_json(path.read_bytes(), path)
    except OSError as error:
        raise BookError(f"cannot be read: {error.strerror}", path) from None


def _new(book, options):
    try:
        new_recipe.check(book, options.recipe, options.title)
    except BookError as error:
        print(f"fusebook: {error}", file=sys.stderr)
        return 2
    if not options.check:
        for path in new_recipe.make(book, options.recipe, options.title):
            print(f"wrote {book.show(path)}")
    return 0


def _apply(book, options):
    text = patches.patched(book, options.recipe, options.exercise)
    samples.write_files({options.out.resolve(): text})
    return 0


def _make_patch(book, options):
    before = book.recipe_path(options.recipe).read_text(encoding="utf-8")
    try:
        after = options.edited.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BookError(f"cannot be read: {error}", options.edited) from None
    text = patches.make(options.recipe, before, after)
    path = book.patch_path(options.recipe, options.exercise)
    samples.write_files({path: text})
    print(f"{book.show(path)}: written")
    return 0


def _rebase_patch(book, options):
    failed = False
    for recipe in [options.recipe] if options.recipe else book.recipe_names():
        given = options.exercise
        for name in [given] if given else book.exercise_names(recipe):
            for error in exercises.misfits(book, recipe, name):
                failed = _rebase_one(book, recipe, name, error,
                                     options.check) or failed
    return 1 if failed else 0


def _rebase_one(book, recipe, exercise, error, only_check):
    """Whether there is still something to do."""
    if only_check:
        print(f"{error}\nRebase it: python3 docs/fusebook_docs rebase-patch "
              f"--recipe {recipe} --exercise {exercise}")
        return True
    merged = exercises.rebased(book, recipe, exercise)
    path = book.patch_path(recipe, exercise)
    if lines := exercises.conflicts(merged):
        copy = book.root / "build" / "exercises" / f"{recipe}.{exercise}.cpp"
        samples.write_files({copy: merged})
        for line in lines:
            print(f"{book.show(copy)}:{line}: the recipe and the answer "
                  "change the same lines")
        print("Edit that copy, then: python3 docs/fusebook_docs make-patch "
              f"--recipe {recipe} --exercise {exercise} --edited "
              f"{book.show(copy)}")
        return True
    before = book.recipe_path(recipe).read_text(encoding="utf-8")
    samples.write_files({path: patches.make(recipe, before, merged)})
    print(f"{book.show(path)}: rebased")
    return False


def _limits(book, options):
    names = [options.recipe] if options.recipe else book.recipe_names()
    failed = False
    for name in names:
        path = book.recipe_path(name)
        recipe = literate.read(path, book.show(path))
        print(limits.summary(name, recipe))
        for problem in _all(limits.problems(book, name, recipe),
                            exercises.problems(book, name),
                            gallery.problems(book, name),
                            _untrue(book, prose.of_recipe(book, name, recipe)),
                            code_names.problems(book, prose.of_recipe(
                                book, name, recipe)),
                            _samples(book, name)):
            failed = True
            print(f"  {problem}")
    if options.recipe is None:
        found = _all(_untrue(book, prose.of_pages(book)),
                     code_names.problems(book, prose.of_pages(book, ())),
                     code_names.in_pages(book), claims.problems(book))
        failed = failed or bool(found)
        print("Pages: " + ("".join(f"\n  {problem}" for problem in found) or
                           "every number is quoted, every name is one that there is"))
    return 1 if failed else 0


def _samples(book, name):
    """What is wrong with the samples of a recipe and of its answers."""
    for exercise in (None, *book.exercise_names(name)):
        source = checking.source_of(book, name, exercise)
        found = {}
        for device in book.devices(name, exercise):
            try:
                found[device] = samples.load(book, device, name, exercise)
            except BookError as error:
                yield error
        yield from checking.disagreements(book, found, source, exercise)


def _untrue(book, texts):
    for text in texts:
        yield from prose.problems(book, text)


def _all(*checks):
    """What the checks find, each thing once; one that cannot go on says why."""
    found = {}
    for check in checks:
        try:
            found.update((str(problem), None) for problem in check)
        except BookError as error:
            found[str(error)] = None
    return list(found)


def _site(book, options):
    words = [word for word, wanted in (("-E", options.fresh),
                                       ("-q", options.quiet)) if wanted]
    return site.build(book, options.out.resolve(), options.doctrees.resolve(), words)


def _translations(book, options):
    if options.update:
        for line in updating.update(book):
            print(line)
        return 0
    found = _all(checks.problems(book))
    for problem in found:
        print(problem)
    if not found:
        count = sum(len(catalogues.read(book, name))
                    for name in catalogues.names(book))
        print(f"{count} messages in {len(catalogues.names(book))} catalogues, all "
              "translated")
    return 1 if found else 0


def _list(book, options):
    for recipe in book.recipe_names():
        names = book.exercise_names(recipe) if options.exercises else [None]
        for name in names:
            print(recipe if name is None else f"{recipe} {name}")
    return 0
