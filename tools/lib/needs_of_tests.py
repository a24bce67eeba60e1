"""What has to be built and installed for some of the tests.

    needs_of_tests.py BUILD "NAME..." ctest OPTION...

Asks ctest which tests its options choose, and prints one word for each thing
that their commands name: target=FILE for what Ninja builds, environment=NAME
for Python packages, program=NAME. Every NAME must be among the chosen. Exit
code 2: there is no such test, or none is chosen.
"""

import difflib
import json
import pathlib
import re
import subprocess
import sys

# CMake leaves the command of a test whose program is not built out of what
# ctest tells, so commands are read where CMake wrote them.
ADD_TEST = re.compile(r"^\s*add_test\(\[=*\[(.*?)\]=*\] (.*)\)$", re.MULTILINE)
WORD = re.compile(r'"((?:\\.|[^"\\])*)"|\[=*\[(.*?)\]=*\]|(\S+)')


def commands(build):
    """The words of every test's command."""
    found = {}
    for path in build.rglob("CTestTestfile.cmake"):
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        for name, rest in ADD_TEST.findall(text):
            found[name] = [re.sub(r"\\(.)", r"\1", quoted) or bracketed or bare
                           for quoted, bracketed, bare in WORD.findall(rest)]
    return found


def chosen(ctest):
    """The names of the tests that ctest would run."""
    done = subprocess.run([*ctest, "--show-only=json-v1"], capture_output=True,
                          text=True, errors="surrogateescape", check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return [test["name"] for test in json.loads(done.stdout)["tests"]]


def ninja(build, *words):
    """The lines that one of Ninja's tools prints."""
    return subprocess.run(["ninja", "-C", str(build), "-t", *words],
                          capture_output=True, text=True, errors="surrogateescape",
                          check=True).stdout.splitlines()


def outputs(build):
    """The files that Ninja can build, relative to its folder; also those that were
    written when it was configured, and start what it builds."""
    return {line.rsplit(": ", 1)[0] for line in ninja(build, "targets", "all")
            if not line.endswith(": phony")
            or (build / line.rsplit(": ", 1)[0]).is_file()}


def parts_of(target, build):
    """The targets that CMake builds with `all`, those of a folder with `FOLDER/all`."""
    for line in ninja(build, "query", target):
        if line.startswith("  outputs:"):
            return
        if line.startswith("    "):
            part = line.split()[-1]
            yield part
            if part.endswith("/all"):
                yield from parts_of(part, build)


def without_parts_of_all(found, build):
    """The needs, less the targets that are built with `all`, if that is among them."""
    if "target=all" not in found:
        return found
    return found - {f"target={part}" for part in parts_of("all", build)}


def needs(words, build, files):
    """What one command needs."""
    found = set()
    for word in words:
        path = pathlib.Path(word)
        if path == build:
            found.add("target=all")
        elif path.is_relative_to(build):
            name = str(path.relative_to(build))
            if name in files:
                found.add(f"target={name}")
    if len(words) > 2 and words[1].endswith("/tests/launch.sh"):
        match words[2:4]:
            case ["environment", name]:
                found.add(f"environment={name}")
                if name == "module":
                    found.add("program=pythondev")
                if name == "pages":
                    found |= {"program=chromium", "program=chinese"}
                if name in ("docs", "pages"):
                    found.add("program=doxygen")
            case ["libtorch", _]:
                found.add("program=libtorch")
            case ["ranks", _] | ["without", "MPI"]:
                found.add("program=mpi")
            case ["nvrtc", _]:
                found.add("environment=cuda")
    if any(word.endswith("/consumers_test.py") for word in words):
        found.add("program=pkgconfig")
        if words[-1].endswith("/consumers_test.py"):  # its headers, by every clang
            found.add("program=clang")
    if words and words[-1].endswith("/mutants.py"):
        found |= {"environment=module", "program=pythondev"}
    return found


def refuse_unknown(names, picked, known):
    for name in names:
        if name in picked:
            continue
        if name in known:
            print(f"fusebook: the other options exclude the test '{name}'",
                  file=sys.stderr)
        else:
            near = difflib.get_close_matches(name, known, 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            print(f"fusebook: unknown test '{name}'.{hint} "
                  "./fusebook test -N lists them.", file=sys.stderr)
        sys.exit(2)


def main(build, names, *ctest):
    build = pathlib.Path(build)
    picked = chosen(ctest)
    if not picked and not names:
        print("fusebook: these options choose no test; "
              "./fusebook test -N lists all", file=sys.stderr)
        sys.exit(2)
    known = commands(build)
    refuse_unknown(names.split(), picked, known)
    files = outputs(build)
    found = set().union(*(needs(known.get(name, []), build, files)
                          for name in picked))
    print("\n".join(sorted(without_parts_of_all(found, build))))


if __name__ == "__main__":
    main(*sys.argv[1:])
