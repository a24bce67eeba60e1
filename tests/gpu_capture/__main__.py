"""Everything a GPU has to show, in one command that needs no network.

    python3 tests/gpu_capture --device cuda [--out DIR] [--only STAGES]
                              [RECIPE...]

Our own results come first: tests on the device, samples of the recipes, the
benchmark; then PyTorch where it is installed, and compute-sanitizer. Every
stage has a share of the time (FUSEBOOK_BUDGET seconds, 600), the summary is
written again after every line, and what there is at the end, or when it is
interrupted, goes into one archive.

Exit codes: 0 done, 1 something failed, 2 wrong usage, 3 no such device, 130
interrupted.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

import building
import gpu as gpus
import own_results
import peers
import sanitizer
from report import Refused, Report

ROOT = Path(__file__).resolve().parents[2]
# Shares of the budget that a stage may take; peers get what our own results
# left but for the sanitizer's.
BUILD, TESTS, SAMPLES, BENCH, SANITIZER = .45, .15, .2, .25, .15
ARCHIVE = 5.0  # seconds for the end
STAGES = ("tests", "samples", "bench", "peers", "sanitizer")


def main():
    options = _options()
    try:
        gpu = gpus.find(options.device)
        budget = _budget()
        out = options.out or (ROOT / "build" /
                              f"capture-{options.device.replace(':', '-')}")
        report = Report(out.resolve(), gpu, budget)
    except gpus.NoGpu as error:
        return _complain(f"--device {options.device}: {error}", 3)
    except (gpus.WrongDevice, Refused, ValueError) as error:
        return _complain(error, 2)
    signal.signal(signal.SIGTERM, _interrupt)
    return _finish(report, options)


def _options():
    parser = argparse.ArgumentParser(
        prog="gpu_capture", description=__doc__.partition("\n")[0])
    parser.add_argument("--device", required=True)
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--only", type=_stage_names, default=STAGES,
                        metavar="STAGES", help=", ".join(STAGES) +
                        ": one or more, comma-separated; default: all")
    parser.add_argument("--programs", type=Path, metavar="DIR",
                        help="build nothing; use the programs there")
    parser.add_argument("recipes", nargs="*", metavar="RECIPE")
    return parser.parse_args()


def _stage_names(text):
    names = text.split(",")
    unknown = [name for name in names if name not in STAGES]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"unknown stage '{unknown[0]}'; known: {', '.join(STAGES)}")
    return names


def _budget():
    text = os.environ.get("FUSEBOOK_BUDGET", "600")
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"FUSEBOOK_BUDGET is '{text}'; it must be a number "
                         "of seconds")
    return float(text)


def _complain(message, code):
    print(f"fusebook: {message}", file=sys.stderr)
    return code


def _interrupt(_signal, _frame):
    raise KeyboardInterrupt


def _finish(report, options):
    code = 1
    try:
        _stages(report, options)
        report.end("Done")
        code = 1 if report.failures else 0
    except building.CannotBuild as error:
        report.failed(str(error))
        report.end("Nothing could be run")
    except KeyboardInterrupt:
        code = 130
        report.end("Interrupted")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(f"One file has it all: {report.archive()}")
    return code


def _stages(report, options):
    recipes = options.recipes or building.recipes_of(ROOT)
    programs = options.programs
    if programs is None:
        programs = building.build(report, ROOT, recipes, _share(report, BUILD))
    programs = programs.resolve()
    def limit(share, kept=0.0):
        """Of some stages each may take all the time there is."""
        return _share(report, share if _is_whole(options) else 1.0, kept)

    if "tests" in options.only:
        own_results.run_tests(report, ROOT, programs, limit(TESTS))
    if "samples" in options.only:
        own_results.capture_samples(report, ROOT, programs, recipes,
                                    limit(SAMPLES))
    if "bench" in options.only:
        own_results.run_benchmark(report, ROOT, programs, limit(BENCH))
    if "peers" in options.only:
        kept = SANITIZER if "sanitizer" in options.only else 0.0
        seconds = limit(1 - kept, kept)
        peers.compare(report, peers.measure(report, ROOT, seconds))
    if "sanitizer" in options.only:
        sanitizer.check(report, ROOT, programs, limit(SANITIZER))


def _is_whole(options):
    return set(options.only) == set(STAGES)


def _share(report, share, kept=0.0):
    """Seconds a stage may take; a share is kept for those that follow."""
    most = report.left - ARCHIVE - kept * report.budget
    return max(min(share * report.budget, most), 0.0)


if __name__ == "__main__":
    sys.exit(main())
