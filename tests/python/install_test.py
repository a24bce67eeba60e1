"""Installs the Python package into an empty environment and runs its tests there.

    python install_test.py
"""

import pathlib
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent


def main():
    with tempfile.TemporaryDirectory(prefix="fusebook-python-") as folder:
        venv.create(folder, with_pip=True)
        python = pathlib.Path(folder) / "bin" / "python"
        pins = (ROOT / "tests/requirements-module.txt").read_text().split()
        numpy = next(pin for pin in pins if pin.startswith("numpy=="))
        suites = [HERE / f"{name}_test.py" for name in ("numpy", "exchange", "threads")]
        for command in (["-m", "pip", "install", "-q", ROOT, numpy],
                        *(["-B", suite] for suite in suites)):
            done = subprocess.run([python, *command], cwd=folder, check=False)
            if done.returncode:
                sys.exit(done.returncode)


if __name__ == "__main__":
    main()
