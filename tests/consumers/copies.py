"""An installed copy of the library, which was moved, and projects built with it."""

import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def run(*command, **options):
    """Output and exit code of a command."""
    done = subprocess.run([str(word) for word in command], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)
    return done.returncode, done.stdout


class Copies:
    """What tests of copies share."""

    @classmethod
    def make_folder(cls):
        folder = tempfile.TemporaryDirectory(prefix="fusebook-consumers-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    @classmethod
    def installed(cls, build, name):
        """Where an installed copy lies after it was moved."""
        first, last = cls.folder / "first" / name, cls.folder / name
        code, text = run("cmake", "--install", build, "--prefix", first)
        if code != 0:
            raise RuntimeError(text)
        shutil.move(first, last)
        return last

    @classmethod
    def good(cls, *command, **options):
        """The output of a command that succeeds."""
        code, text = run(*command, **options)
        if code != 0:
            raise AssertionError(text)
        return text

    @classmethod
    def configure(cls, project, build, prefix, *options):
        return run("cmake", "-S", HERE / project, "-B", build,
                   "-DCMAKE_BUILD_TYPE=Release",
                   f"-DCMAKE_PREFIX_PATH={prefix}", *options)

    @classmethod
    def built(cls, project, prefix, *options, targets=("all",)):
        """The folder in which a project was built."""
        build = pathlib.Path(tempfile.mkdtemp(dir=cls.folder))
        code, text = cls.configure(project, build, prefix, *options)
        if code != 0:
            raise AssertionError(text)
        cls.good("cmake", "--build", build, "-j2", "--target", *targets)
        return build
