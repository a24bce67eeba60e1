"""Formatting and lint: clang-format, clang-tidy, shellcheck and, for workflows,
their schema, as pinned.

    python lint.py format [--fix] [FILE...]
    python lint.py tidy [--quick] BUILD [FILE...]
    python lint.py headers BUILD [FILE...]
    python lint.py shell [FILE...]
    python lint.py workflows [FILE...]

BUILD is a build folder or its compile_commands.json. Without FILE, all files
are checked; of the files given, each command checks those of its kind, and tidy
checks a header through one source that includes it; --quick leaves out the analyzer
and, without FILE, the tests: they take most of the time. `headers` compiles
those that are installed as a stranger's program would, with more warnings than ours.

What clang-tidy found clean is remembered in the user's cache folder, by the hash
of everything that was looked at (the file, what it includes, its compile command,
the settings, the tool's version), wherever the checkout lies: what did not
change costs nothing in a second run, a new build folder or a new clone.
"""

import concurrent.futures
import contextlib
import difflib
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time

import joined_sources

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = ("kernels", "common", "pack", "python", "recipes", "docs/examples",
          "tests")
PINS = ROOT / "tests" / "requirements-lint.txt"
MODULE = ROOT / "build" / "python" / "module" / "ready"
INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def tool(name):
    """Path of a program that the pinned packages brought."""
    beside = pathlib.Path(sysconfig.get_path("scripts")) / name
    packaged = (pathlib.Path(sysconfig.get_path("purelib")) /
                name.replace("-", "_") / "data" / "bin" / name)
    for path in (packaged, beside):
        if path.is_file():
            return str(path)
    sys.exit(f"{name} is not installed in this Python ({sys.prefix}): "
             f"run ./fusebook test, which installs {PINS.relative_to(ROOT)}")


def sources(*endings):
    found = []
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*")):
            if path.suffix in endings and "fixtures" not in path.parts:
                found.append(path)
    return found


def digest(parts):
    total = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        total.update(b"%d:" % len(data) + data)
    return total.hexdigest()


def cache_folder():
    """Where results are kept for every checkout of this user.

    Not in the kernel cache: a directory in there makes every program look for
    leftovers of processes that were interrupted.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = pathlib.Path(given) if given.startswith("/") else (
        pathlib.Path.home() / ".cache")
    return base / "fusebook-lint"


class Clean:
    """Remembers by hash what was found clean, for two months after its use."""

    KEPT_SECONDS = 60 * 24 * 3600

    def __init__(self, folder):
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in folder.iterdir():
                if time.time() - path.stat().st_mtime > self.KEPT_SECONDS:
                    path.unlink(missing_ok=True)
        except OSError as error:
            print(f"cannot remember results: {error}")

    def __contains__(self, key):
        known = (self.folder / key).exists()
        if known:
            self.add(key)
        return known

    def add(self, key):
        with contextlib.suppress(OSError):
            (self.folder / key).touch()


def show_difference(path, wanted):
    """What clang-format would change in `path`, at most 40 lines of it."""
    name = str(path.relative_to(ROOT))
    lines = list(difflib.unified_diff(path.read_text().splitlines(),
                                      wanted.splitlines(), name,
                                      name + " (formatted)", "", "", 1, ""))
    print("\n".join(lines[:40]))
    if len(lines) > 40:
        print(f"... and {len(lines) - 40} more lines of {name}")


def of_kind(given, known):
    """Those of the known files that are given; all where none is given."""
    if not given:
        if not known:
            sys.exit("no files found: nothing was checked")
        return known
    paths = [pathlib.Path(name).resolve() for name in given]
    for path in paths:
        if not path.is_file():
            sys.exit(f"{path} is not a file")
    return [path for path in known if path in paths]


def format_command(given, fix):
    files = of_kind(given, sources(".h", ".cpp", ".inc"))
    if not files:
        return 0
    program = tool("clang-format")
    if fix:
        return subprocess.run([program, "-i", *map(str, files)],
                              check=False).returncode
    if subprocess.run([program, "--dry-run", "--Werror", *map(str, files)],
                      capture_output=True, check=False).returncode == 0:
        print(f"{len(files)} files: correctly formatted")
        return 0
    wrong = []
    for path in files:
        done = subprocess.run([program, str(path)], capture_output=True,
                              text=True, check=True)
        if done.stdout != path.read_text():
            show_difference(path, done.stdout)
            wrong.append(path)
    print("\nTo repair the format:\n    ./fusebook lint --fix " + " ".join(
        shlex.quote(str(path.relative_to(ROOT))) for path in wrong))
    return 1


def shell_command(given):
    scripts = of_kind(given, [
        ROOT / "fusebook", ROOT / ".ci" / "run",
        *(path for folder in ("tools", "tests")
          for path in sorted((ROOT / folder).rglob("*.sh")))])
    if not scripts:
        return 0
    done = subprocess.run([tool("shellcheck"), *map(str, scripts)],
                          check=False)
    if done.returncode == 0:
        print(f"{len(scripts)} shell scripts: clean")
    return done.returncode


def workflows_command(given):
    workflows = of_kind(given, sorted(
        (ROOT / ".github" / "workflows").glob("*.y*ml")))
    if not workflows:
        return 0
    done = subprocess.run([tool("check-jsonschema"), "--builtin-schema",
                           "vendor.github-workflows", *map(str, workflows)],
                          check=False, capture_output=True, text=True)
    if done.returncode == 0:
        print(f"{len(workflows)} workflows: as their schema wants them")
    else:
        print(done.stdout + done.stderr, end="")
    return done.returncode


def include_folders(command):
    words = shlex.split(command)
    return [pathlib.Path(word[2:]) for word in words
            if word.startswith("-I") and len(word) > 2]


class Contents:
    """Files and their quoted includes, each read once."""

    def __init__(self):
        self.read = {}

    def of(self, path):
        if path not in self.read:
            data = path.read_bytes()
            self.read[path] = (data, [name.decode() for name in
                                      INCLUDE.findall(data)])
        return self.read[path]

    def reachable(self, source, folders):
        """`source` and all it includes by quotes, to any depth, sorted."""
        seen, todo = set(), [source]
        while todo:
            path = todo.pop()
            if path in seen:
                continue
            seen.add(path)
            for name in self.of(path)[1]:
                for folder in (path.parent, *folders):
                    if (folder / name).is_file():
                        todo.append((folder / name).resolve())
                        break
        return sorted(seen)

    def headers(self, source, folders):
        """All that `source` includes by quotes, to any depth."""
        return frozenset(self.reachable(source, folders)) - {source}


def uses_libtorch(path):
    """Whether a recipe includes LibTorch, whose headers clang-tidy's clang refuses."""
    return (path.parent == ROOT / "recipes" and
            b'"fusebook/libtorch/' in path.read_bytes())


def built_elsewhere(path):
    """Whether a source is a probe of clang, belongs to a sanitizer preset, is a
    program outside of the build, or needs Python packages that are not there."""
    name = str(path.relative_to(ROOT))
    return (name.startswith("tests/consumers/") or uses_libtorch(path) or
            name.startswith("python/") and not MODULE.is_file() or
            name in ("tests/fuzz/empty_fuzz.cpp",
                     "tests/hardening/sanitized_kernels_test.cpp"))


def entries(build):
    """Commands for each of our own sources, from the compile database."""
    database = build / "compile_commands.json"
    if not database.is_file():
        sys.exit(f"{database} is missing: configure first "
                 "(cmake --preset release)")
    commands = {}
    for entry in json.loads(database.read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(ROOT) and not uses_libtorch(path) and not any(
                path.is_relative_to(folder) for folder in (build, ROOT / "build")):
            commands.setdefault(path, []).append(entry["command"])
    unknown = [str(path.relative_to(ROOT)) for path in sources(".cpp")
               if path not in commands and not built_elsewhere(path)]
    if unknown:
        sys.exit("not in the compile database, so not checked: " +
                 ", ".join(unknown) + "\nConfigure again, or remove them.")
    return commands


def definitions(options):
    """The names that a compile command defines."""
    return {word[2:].partition("=")[0] for word in options
            if word.startswith("-D")}


def command_for_all(source, texts, contents):
    """The one with which a source means what it does with each of its compile
    commands, as parts of several programs do; or None.

    It has all their folders of headers, and definitions besides that neither the
    source nor the headers of ours that it includes mention.
    """
    sets = {text: set(joined_sources.options(text, source)) for text in texts}
    best = max(texts, key=lambda text: len(sets[text]))
    more = set().union(*(sets[best] - words for words in sets.values()))
    if (any(words - sets[best] for words in sets.values()) or
            any(not word.startswith(("-I", "-isystem", "-D", "/"))
                for word in more)):
        return None
    names = definitions(more)
    if names and any(name.encode() in contents.of(path)[0]
                     for path in contents.reachable(source, include_folders(best))
                     for name in names):
        return None
    return best


def tidy_one(words, build, source):
    begin = time.monotonic()
    done = subprocess.run([*words, "-p", str(build), str(source)],
                          capture_output=True, text=True, check=False)
    output = done.stdout + (done.stderr if done.returncode else "")
    return done.returncode, output, time.monotonic() - begin


def tidy_joined(words, scratch, files, options):
    """Whether all of these sources are clean, read together."""
    folder = scratch / files[0].parent.relative_to(ROOT)
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"joined_{files[0].stem}_{len(files)}.cpp"
    source.write_text(joined_sources.joined(files), encoding="utf-8")
    done = subprocess.run([*words, str(source), "--", *options],
                          capture_output=True, text=True, check=False)
    return done.returncode == 0


def copy_settings(folder):
    """Settings of clang-tidy, where it looks for those of a source in folder."""
    for path in (ROOT / ".clang-tidy", *ROOT.glob("*/.clang-tidy")):
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, copy)


def tidy_keys(commands):
    """The hash of all that matters for each source, but not where it lies."""
    compiler = shlex.split(next(iter(commands.values()))[0])[0]
    version = subprocess.run([compiler, "--version"], capture_output=True,
                             check=False).stdout
    settings = [path.read_bytes() for path in
                (ROOT / ".clang-tidy", *sorted(ROOT.glob("*/.clang-tidy")))]
    common = [PINS.read_bytes(), *settings, version,
              shutil.which(compiler) or compiler]
    contents = Contents()
    keys = {}
    for source, texts in commands.items():
        folders = include_folders(texts[0])
        files = contents.reachable(source, folders)
        keys[source] = digest(
            common + [text.replace(str(ROOT), ".") for text in sorted(texts)] +
            [part for path in files
             for part in (os.path.relpath(path, ROOT), contents.of(path)[0])])
    return keys


def sources_of(given, commands):
    """The given sources, and for each given header one that includes it."""
    chosen = of_kind(given, sorted(commands))
    headers = of_kind(given, sources(".h", ".inc")) if given else []
    contents = Contents()
    for header in headers:
        users = [(source.stem != header.stem, len(files), source)
                 for source, texts in commands.items()
                 if header in (files := contents.reachable(
                     source, include_folders(texts[0])))]
        if users:
            chosen.append(min(users)[-1])
    return sorted(set(chosen))


class Run:
    """clang-tidy over some sources; `clean` are those without findings."""

    def __init__(self, program, build, pool, count, options=()):
        # What only g++ knows is in the commands, too.
        self.words = (program, "--quiet",
                      "--extra-arg=-Wno-unused-command-line-argument", *options)
        self.build, self.pool, self.count = build, pool, count
        self.clean = set()

    def joined(self, groups, scratch):
        """Reads groups; of those with a finding, their halves."""
        copy_settings(scratch)
        while groups:
            groups = sorted(groups, key=lambda group: -len(group[0]))
            runs = {self.pool.submit(tidy_joined, self.words, scratch,
                                     *group): group for group in groups}
            groups = []
            for run in concurrent.futures.as_completed(runs):
                if run.result():
                    self.found_clean(runs[run][0])
                else:
                    groups += joined_sources.halves(runs[run])

    def found_clean(self, files):
        self.clean.update(files)
        first, *_, last = (path.stem for path in files)
        self.progress(f"{len(files)} together, {first} to {last}")

    def one_by_one(self, files):
        runs = {self.pool.submit(tidy_one, self.words, self.build, source):
                source for source in files}
        for done, run in enumerate(concurrent.futures.as_completed(runs), 1):
            source = runs[run]
            status, output, seconds = run.result()
            if status == 0:
                self.clean.add(source)
            self.progress(f"{source.relative_to(ROOT)} ({seconds:.1f} s)",
                          self.count - len(files) + done)
            if status != 0:
                print(output, flush=True)

    def progress(self, what, done=None):
        done = len(self.clean) if done is None else done
        print(f"[{done}/{self.count}] {what}", flush=True)


# All checks but those of the analyzer.
WITHOUT_ANALYZER = "--checks=-clang-analyzer-*"


def tidy_command(build, given, quick=False):
    program = tool("clang-tidy")
    commands = entries(build)
    if quick and not given:
        commands = {source: texts for source, texts in commands.items()
                    if not source.is_relative_to(ROOT / "tests")}
    chosen = sources_of(given, commands)
    if not chosen:
        return 0
    keys = tidy_keys({source: commands[source] for source in chosen})
    # What the analyzer found clean is so without it, too.
    quick_keys = {source: digest([key, WITHOUT_ANALYZER])
                  for source, key in keys.items()}
    clean = Clean(cache_folder())
    todo = [source for source in keys if keys[source] not in clean and
            not (quick and quick_keys[source] in clean)]
    options = [WITHOUT_ANALYZER] if quick else []
    workers = len(os.sched_getaffinity(0))
    with (tempfile.TemporaryDirectory(prefix="fusebook-lint-") as scratch,
          concurrent.futures.ThreadPoolExecutor(workers) as pool):
        run = Run(program, build, pool, len(todo), options)
        contents = Contents()
        known = {source: command_for_all(source, commands[source], contents)
                 for source in todo}
        alike = {source: command for source, command in known.items() if command}
        together = joined_sources.groups(alike, lambda source: contents.headers(
            source, include_folders(alike[source])))
        run.joined(together, pathlib.Path(scratch))
        run.one_by_one([source for source in todo if source not in run.clean])
    for source in run.clean:
        clean.add((quick_keys if quick else keys)[source])
    bad = len(todo) - len(run.clean)
    print(f"clang-tidy: {len(keys)} files, {len(keys) - len(todo)} unchanged "
          f"since they were found clean, {bad} with findings")
    return 1 if bad else 0


# Texts of kernels; what needs LibTorch or MPI, whose headers have warnings.
NOT_ALONE = ("prelude", "libtorch", "distributed")
# Under -Wconversion clang 15 and 16 warn of signs in C++, too.
STRANGERS_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion")
# clang-tidy does not begin without a check besides the compiler's own.
WARNINGS_ALONE = "--checks=-*,clang-diagnostic-*,bugprone-terminating-continue"


def headers_command(build, given):
    headers = of_kind(given, [
        path for layer in ("kernels", "common")
        for path in sorted((ROOT / layer).rglob("*.h"))
        if path.parent.name not in NOT_ALONE])
    if not headers:
        return 0
    bad = 0
    with tempfile.TemporaryDirectory(prefix="fusebook-lint-") as scratch:
        source = pathlib.Path(scratch, "all_headers.cpp")
        source.write_text("".join(f'#include "{path}"\n' for path in headers))
        for standard in ("c++20", "c++23"):
            done = subprocess.run(
                [tool("clang-tidy"), "--quiet", WARNINGS_ALONE,
                 "--warnings-as-errors=*", "--header-filter=.*", str(source), "--",
                 f"-std={standard}", f"-I{build / 'rooms' / 'all'}",
                 *STRANGERS_WARNINGS],
                check=False, capture_output=True, text=True)
            if done.returncode:
                print(f"In {standard}:\n{done.stdout}{done.stderr}", end="")
                bad += 1
    if not bad:
        print(f"{len(headers)} headers: no warning under "
              f"{' '.join(STRANGERS_WARNINGS)}")
    return 1 if bad else 0


def folder_of(build):
    path = pathlib.Path(build).resolve()
    return path.parent if path.is_file() else path


def main(arguments):
    match arguments:
        case ["format", "--fix", *files]:
            return format_command(files, fix=True)
        case ["format", *files]:
            return format_command(files, fix=False)
        case ["shell", *files]:
            return shell_command(files)
        case ["workflows", *files]:
            return workflows_command(files)
        case ["tidy", "--quick", build, *files]:
            return tidy_command(folder_of(build), files, quick=True)
        case ["tidy", build, *files]:
            return tidy_command(folder_of(build), files)
        case ["headers", build, *files]:
            return headers_command(folder_of(build), files)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
