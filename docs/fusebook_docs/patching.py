"""The commands about the patches of exercises; each returns its exit code."""

from . import exercises, patches, samples
from .errors import BookError


def run_apply(book, options):
    text = patches.patched(book, options.recipe, options.exercise)
    samples.write_files({options.out.resolve(): text})
    return 0


def run_make_patch(book, options):
    before = book.recipe_path(options.recipe).read_text(encoding="utf-8")
    try:
        after = options.edited.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BookError(f"cannot be read: {error}", options.edited) from None
    text = patches.make(patches.target_of(book, options.recipe), before, after)
    path = book.patch_path(options.recipe, options.exercise)
    samples.write_files({path: text})
    print(f"{book.show(path)}: written")
    return 0


def run_rebase_patch(book, options):
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
        suffix = book.recipe_path(recipe).suffix
        copy = book.root / "build" / "exercises" / f"{recipe}.{exercise}{suffix}"
        samples.write_files({copy: merged})
        for line in lines:
            print(f"{book.show(copy)}:{line}: the recipe and the answer "
                  "change the same lines")
        print("Edit that copy, then: python3 docs/fusebook_docs make-patch "
              f"--recipe {recipe} --exercise {exercise} --edited "
              f"{book.show(copy)}")
        return True
    before = book.recipe_path(recipe).read_text(encoding="utf-8")
    samples.write_files({path: patches.make(patches.target_of(book, recipe),
                                             before, merged)})
    print(f"{book.show(path)}: rebased")
    return False
