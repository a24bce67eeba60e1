"""What the commands of the command line do; each returns its exit code."""

import os
import sys
from dataclasses import replace

from . import (capturing, checking, examples, exercises, front, gallery, limits,
               literate, measurements, new_recipe, prose, samples, statements)
from .book import capture_command
from .errors import BookError
from .machine import kept, making, promises
from .reading import ledger
from .translation import catalogues, checks, site, updating

# A kernel's text depends on no size, and the simulated GPU is slow.
_SMALL = {"layers": "2", "width": "8"}
# On several ranks there is a chunk of the fixed summation for each.
_SMALL_ON_RANKS = _SMALL | {"width": "256"}


def run_front(book, options):
    stale = front.stale(book)
    if options.write:
        front.write(book)
    for path in stale:
        print(f"wrote {path}" if options.write else
              f"{path} no longer shows what was captured; run: "
              "python3 docs/fusebook_docs front --write")
    return 1 if stale and not options.write else 0


def run_examples(book, options):
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


def run_machine_code(book, options):
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


def run_verify(book, options):
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


def run_kernels(book, options):
    """What a page says of a GPU's sample rests on this."""
    page = samples.load(book, "cpu", options.recipe, options.exercise)
    small = _SMALL_ON_RANKS if gallery.ranks(book, options.recipe) else _SMALL
    words = [word for name, value in small.items() if name in page.options
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


def run_capture(book, options):
    # What a page shows was measured.
    os.environ.pop("FUSEBOOK_QUICK", None)
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


def run_measurements(book, options):
    result = _json_of(options.json)
    for path in options.also:
        result = measurements.joined(result, _json_of(path))
    for path in options.again:
        result = measurements.merged(result, _json_of(path))
    measurements.store(book, result, options.words, options.name)
    print(f"captured in {book.show(measurements.path(book, options.name))}")
    return 0


def _json_of(path):
    try:
        return samples.parse_json(path.read_bytes(), path)
    except OSError as error:
        raise BookError(f"cannot be read: {error.strerror}", path) from None


def run_new(book, options):
    try:
        new_recipe.check(book, options.recipe, options.title)
    except BookError as error:
        print(f"fusebook: {error}", file=sys.stderr)
        return 2
    if not options.check:
        for path in new_recipe.make(book, options.recipe, options.title):
            print(f"wrote {book.show(path)}")
    return 0


def run_limits(book, options):
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
                            statements.problems(book, prose.of_recipe(
                                book, name, recipe)),
                            _samples(book, name)):
            failed = True
            print(f"  {problem}")
    if options.recipe is None:
        pages = list(prose.of_pages(book, ()))
        texts = [*pages, *(text for name in names for text in _of_recipe(book, name))]
        found = _all(_untrue(book, prose.of_pages(book)),
                     statements.problems(book, pages),
                     statements.of_the_house(book, texts),
                     () if statements.is_toy(book) else ledger.problems(book))
        failed = failed or bool(found)
        print("Pages: " + ("".join(f"\n  {problem}" for problem in found) or
                           "every number is quoted, every name is one that there is, "
                           "every passage was read again"))
    return 1 if failed else 0


def run_reread(book, options):
    done = ledger.reread(book, options.page)
    for each in done:
        print(each)
    print(f"{len(done)} passages are taken as read, in {book.show(ledger.path(book))}."
          if done else "Every passage was read after its last change.")
    return 0


def _of_recipe(book, name):
    path = book.recipe_path(name)
    return prose.of_recipe(book, name, literate.read(path, book.show(path)))


def _samples(book, name):
    """What is wrong with the samples of a recipe and of its answers."""
    own = {}
    for exercise in (None, *book.exercise_names(name)):
        source = checking.source_of(book, name, exercise)
        found = {}
        for device in book.devices(name, exercise):
            try:
                found[device] = samples.load(book, device, name, exercise)
            except BookError as error:
                yield error
        yield from checking.disagreements(book, found, source, exercise)
        own = own or found
        for device in own.keys() & found.keys():
            yield from checking.of_another_machine(book, own[device], found[device])


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


def run_site(book, options):
    words = [word for word, wanted in (("-E", options.fresh),
                                       ("-q", options.quiet)) if wanted]
    return site.build(book, options.out.resolve(), options.doctrees.resolve(), words)


def run_translations(book, options):
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


def run_list(book, options):
    for recipe in book.recipe_names():
        names = book.exercise_names(recipe) if options.exercises else [None]
        for name in names:
            print(recipe if name is None else f"{recipe} {name}")
    return 0
