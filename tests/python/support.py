"""What the tests of the Python package share.

Its modules are found where a build put them, if its folder is the first argument;
else they must be installed.
"""

import pathlib
import subprocess
import sys

CONSUMERS = pathlib.Path(__file__).resolve().parent.parent / "consumers" / "python"
FOLDER = sys.argv.pop(1) + "/python" if len(sys.argv) > 1 else ""
if FOLDER:
    sys.path.insert(0, FOLDER)


def printed_by(name):
    """What a program of consumers/python prints."""
    start = f"import sys; sys.path.insert(0, {FOLDER!r}); " if FOLDER else ""
    program = CONSUMERS / name
    done = subprocess.run(
        [sys.executable, "-B", "-c",
         f"{start}import runpy; runpy.run_path({str(program)!r})"],
        capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def expected_of(name):
    return (CONSUMERS / name).with_suffix(".txt").read_text()
