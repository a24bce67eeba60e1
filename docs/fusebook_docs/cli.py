"""The command line: `python3 docs/fusebook_docs COMMAND`.

Exit codes: 0 success, 1 a difference or a failed run, 2 wrong usage,
130 interrupted.
"""

import argparse
import sys
from pathlib import Path

from . import measurements, patching, subcommands
from .book import Book
from .errors import BookError


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
    _add_running(commands, "verify", subcommands.run_verify,
                 "run a recipe and compare what it prints with its page")
    capture = _add_running(commands, "capture", subcommands.run_capture,
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
    _add_running(commands, "kernels", subcommands.run_kernels,
                 "run a small version of a recipe on a GPU or the simulator "
                 "and compare its kernels with the CPU's sample",
                 device="cuda-sim")
    machine = _add(commands, "machine-code", subcommands.run_machine_code,
                   "compile a recipe's kernel, and compare the texts with those "
                   "that its page shows")
    machine.add_argument("--program", required=True, type=Path, metavar="PATH",
                         help="the built recipe")
    machine.add_argument("--recipe", required=True)
    machine.add_argument("--checker", required=True, type=Path, metavar="PATH",
                         help="the built gpu_code_check")
    machine.add_argument("--write", action="store_true",
                         help="keep the texts as the page's")
    example = _add(commands, "examples", subcommands.run_examples,
                   "run the examples of the API reference and compare what "
                   "they print with its pages")
    example.add_argument("--program", required=True, type=Path, metavar="PATH",
                         help="the built program")
    example.add_argument("--write", action="store_true",
                         help="save what they print as the pages' output")
    front_page = _add(commands, "front", subcommands.run_front,
                      "compare what README.md shows of the book with the "
                      "samples")
    front_page.add_argument("--write", action="store_true",
                            help="update README.md and its picture")
    measured = _add(commands, "measurements", subcommands.run_measurements,
                    "keep what the benchmark measured as what its page shows")
    measured.add_argument("--json", required=True, type=Path, metavar="FILE",
                          help="what bench --json wrote")
    measured.add_argument("--name", choices=measurements.HOW, default="cpu",
                          help="which measurement (default: %(default)s)")
    measured.add_argument("--also", action="append", default=[], type=Path,
                          metavar="FILE", help="the same of another case, which "
                                               "is added")
    measured.add_argument("--again", action="append", default=[], type=Path,
                          metavar="FILE", help="the same of a single case, in "
                                               "whose place it comes")
    measured.add_argument("--command", required=True, dest="words",
                          metavar="TEXT", help="the command that measured it")
    new = _add(commands, "new", subcommands.run_new,
               "make a recipe that keeps every rule, to be changed")
    new.add_argument("--recipe", required=True, metavar="NAME")
    new.add_argument("--title", help="default: made from the name")
    new.add_argument("--check", action="store_true",
                     help="only say whether it can have that name and title")
    apply = _add(commands, "apply", patching.run_apply,
                 "write a recipe with the answer to an exercise applied")
    apply.add_argument("--recipe", required=True)
    apply.add_argument("--exercise", required=True)
    apply.add_argument("--out", required=True, type=Path, metavar="FILE")
    make = _add(commands, "make-patch", patching.run_make_patch,
                "make the patch of an exercise from an edited copy")
    make.add_argument("--recipe", required=True)
    make.add_argument("--exercise", required=True)
    make.add_argument("--edited", required=True, type=Path, metavar="FILE")
    rebase = _add(commands, "rebase-patch", patching.run_rebase_patch,
                  "rebase patches onto recipes that have changed around "
                  "them")
    rebase.add_argument("--recipe", help="only of this one (default: all)")
    rebase.add_argument("--exercise", help="only this one")
    rebase.add_argument("--check", action="store_true",
                        help="only list the patches that no longer apply")
    limit = _add(commands, "limits", subcommands.run_limits,
                 "check that recipe pages keep their limits, that their "
                 "exercises apply, and that every number in the book's prose "
                 "is quoted and true")
    limit.add_argument("--recipe", help="only this one (default: all)")
    again = _add(commands, "reread", subcommands.run_reread,
                 "show each passage that was changed since it was read, and take it as "
                 "read")
    again.add_argument("page", nargs="*", metavar="FILE",
                       help="only of these files (default: all)")
    whole = _add(commands, "site", subcommands.run_site,
                 "build the site in every language (needs "
                 "docs/requirements.txt)")
    whole.add_argument("--out", required=True, type=Path, metavar="DIR")
    whole.add_argument("--doctrees", required=True, type=Path, metavar="DIR",
                       help="where to keep what was read, for the next time")
    whole.add_argument("--fresh", action="store_true",
                       help="use nothing that is kept there")
    whole.add_argument("--quiet", action="store_true",
                       help="print warnings alone")
    translations = _add(commands, "translations", subcommands.run_translations,
                        "check the catalogues of the book's translations")
    translations.add_argument("--update", action="store_true",
                              help="first bring them to what the pages say "
                                   "(needs docs/requirements.txt)")
    listed = _add(commands, "list", subcommands.run_list,
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
