"""Makes the texts of a recipe's kernel: from the program to x86 assembly, PTX
and SASS. Needs a compiler, NVRTC and nvdisasm, and no GPU.

Of the kernels with one loop that the recipe compiles it is the one that moves most
bytes for an element, which is the step rather than a copy before it; the first of those
that move as many, and only one that has the operation which `kernel_with` names in
docs/gallery.toml, if it names one. (What sums up before its step has a loop for that,
and does not fit into a link.) Its text is the one that the program gives to the
host's compiler and would give to NVRTC, without the comments of what every kernel
begins with.
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from .. import cpp, gallery
from ..errors import BookError
from . import counted, explorer, kept

ARCHITECTURE = 90  # whose PTX and SASS are shown
_INCLUDE = re.compile(r'#ifndef FUSEBOOK_\w+\n#include "[^"]*"\n#endif\n')
# Any computer of the last ten years; what the page shows must not depend on the
# machine that made it.
MACHINE = "-march=x86-64-v3"
_KEEP_SOURCES = "tests/gpu_code/keep_sources.sh"
_PRELUDE_END = re.compile(r"^#endif  // FUSEBOOK_\w+\n", re.MULTILINE)
_BODY = "struct Body0 {\n"
# What a body computes, which is the same for the CPU and for GPUs.
_STAGES = re.compile(r"^  // Once per launch\.$.*?^  static FUSE_FN void load\(",
                     re.MULTILINE | re.DOTALL)
# What is not said of assembly. The language is said where there is no file name.
_LINKING = {"-x", "c++", "-shared", "-nostdlib", "-nostartfiles"}

# Keeps every text that it compiles, in order. Which of the two kinds it is, for
# the CPU or for the simulated GPU, does not matter.
_COMPILER = """#!/bin/sh
for word do last=$word; done
case $last in *.cpp)
  number=100
  while [ -e "$0.$number" ]; do number=$((number + 1)); done
  cp -- "$last" "$0.$number" ;;
esac
exec COMPILER "$@"
"""


def host_compiler():
    """The words that start it."""
    words = shlex.split(os.environ.get("CXX", "g++"))
    if not words or shutil.which(words[0]) is None:
        raise BookError(f"CXX must name a compiler, such as g++, not "
                        f"{' '.join(words)!r}")
    return words


def compiler_name(compiler):
    """As samples name it: "g++ 12.2.0"."""
    first = _run([*compiler, "--version"]).split("\n")[0]
    kind = "clang++" if "clang" in first else "g++"
    return f"{kind} {re.search(r'[0-9]+[.][0-9]+[.][0-9]+', first)[0]}"


def make(book, recipe, program, checker):
    """The kernel of a built recipe; `checker` is the program gpu_code_check."""
    compiler = host_compiler()
    with tempfile.TemporaryDirectory(prefix="fusebook-") as name:
        folder = Path(name)
        host, cuda = _sources(book, recipe, program, compiler, folder)
        texts = {"cpp": _without_comments(host, recipe),
                 "cuda": _without_comments(cuda, recipe)}
        options = _options(_run([checker, "--host-options"]).split())
        # What the page's link opens is what is compiled.
        source, options, _ = explorer.opened(
            explorer.link(texts["cpp"], options))
        texts["x86"] = assembly(compiler, options, source)
        nvrtc, gpus = _gpu_code(checker, texts, folder)
        nvdisasm, texts["sass"] = _disassembled(folder / "kernel.cubin")
    return kept.Kernel(recipe, texts, compiler_name(compiler), tuple(options),
                       nvrtc, nvdisasm, gpus)


def _run(command, **settings):
    done = subprocess.run([str(word) for word in command], text=True,
                          capture_output=True, check=False, **settings)
    if done.returncode != 0:
        raise BookError(f"{command[0]} ended with exit code {done.returncode}: "
                        f"{done.stderr.strip()[-2000:]}")
    return done.stdout


def _sources(book, recipe, program, compiler, folder):
    """C++ and CUDA text of the kernel."""
    wrapper, kept_in = folder / "cxx", folder / "kept"
    wrapper.write_text(_COMPILER.replace("COMPILER", shlex.join(compiler)))
    wrapper.chmod(0o755)
    _run(["sh", book.root / _KEEP_SOURCES, kept_in, "recipes",
          Path(program).resolve()], cwd=book.root,
         env={**os.environ, "FUSEBOOK_CXX": str(wrapper),
              "FUSEBOOK_CACHE_DIR": str(folder / "cache")})
    entry = next(e for e in gallery.entries(book) if e.name == recipe)
    texts = (path.read_text(encoding="utf-8") for path in sorted(folder.glob("cxx.???")))
    for text in by_traffic(texts, entry.kernel_with):
        stages = _STAGES.findall(text)
        found = [_with(stages, kept_in.glob(f"*.{suffix}"))
                 for suffix in ("cpp", "cu")]
        if all(found):  # else a kernel of the library's own, such as a fill
            return found
    raise BookError(f"{recipe} compiles no kernel" +
                    (f" with {entry.kernel_with!r}" if entry.kernel_with else ""))


def by_traffic(texts, operation=None):
    """C++ texts of kernels with one loop, what moves most bytes for an element first;
    with an operation, only those that have it."""
    wanted = f" {operation}(" if operation else _BODY
    return sorted((text for text in texts
                   if counted.loops(text) == 1 and wanted in text),
                  key=counted.moved, reverse=True)


def _with(stages, paths):
    for path in sorted(paths):
        text = path.read_text(encoding="utf-8")
        if _STAGES.findall(text) == stages:
            return text
    return None


def _without_comments(text, recipe):
    """The kernel; what every kernel begins with loses comments, blanks, and
    includes, which serve where it is a header."""
    end = [match.end() for match in _PRELUDE_END.finditer(text)][-1]
    prelude = cpp.blanked(text[:end], recipe, keep_strings=True)
    lines = (line.rstrip() for line in prelude.split("\n"))
    prelude = "\n".join(line for line in lines if line)
    return f"{_INCLUDE.sub('', prelude)}\n{text[end:].strip()}\n"


def _options(words):
    """A kernel's options without those that are of a file or of this machine."""
    return tuple(MACHINE if word == "-march=native" else word for word in words
                 if word not in _LINKING)


def assembly(compiler, options, text):
    """Intel's syntax, without what is no instruction, label or constant."""
    done = _run([*compiler, "-x", "c++", *options, "-masm=intel", "-S", "-o",
                 "-", "-"], input=text)
    lines = [re.sub(r"\s*#.*$", "", line).rstrip() for line in done.split("\n")]
    lines = [line for line in lines
             if line and not re.match(r"\s+\.(?!long|quad|byte)", line)]
    lines = [_in_columns(line) for line in lines]
    used = set(re.findall(r"\.L\w+", "\n".join(
        line for line in lines if not re.match(r"\.L\w+:", line))))
    return "".join(f"{line}\n" for line in lines
                   if not line.startswith(".L") or line[:-1] in used)


def _in_columns(line):
    """Tabs would take half the width of a phone."""
    words = line.split(None, 1)
    if not line[0].isspace() or not words:
        return line
    return f"  {words[0]:<9} {words[1] if words[1:] else ''}".rstrip()


def _gpu_code(checker, texts, folder):
    """Compiles the CUDA text: adds the PTX, leaves a cubin in the folder."""
    source, report, ptx, cubin = (
        folder / f"kernel.{suffix}" for suffix in ("cu", "report", "ptx", "cubin"))
    source.write_text(texts["cuda"], encoding="utf-8")
    said = _run([checker, "--report", report, source])
    gpus = tuple(kept.Gpu.read(line)
                 for line in report.read_text().splitlines())
    only = "--only", ARCHITECTURE, "--keep"
    _run([checker, "--ptx", *only, ptx, source])
    _run([checker, *only, cubin, source])
    texts["ptx"] = ptx.read_text()
    return re.match(r"NVRTC [0-9.]+", said)[0], gpus


def _disassembled(cubin):
    """What made it, and the instructions of a cubin."""
    program = shutil.which(os.environ.get("FUSEBOOK_NVDISASM") or "nvdisasm")
    if program is None:
        raise BookError("SASS needs nvdisasm, of the CUDA Toolkit or in "
                        "tests/requirements-cuda.txt")
    release = re.search(r"release ([0-9.]+)", _run([program, "--version"]))
    return f"nvdisasm {release[1]}", sass(_run([program, "-c", cubin]))


# An instruction behind its address, and the predicate before it.
_INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]+\*/\s+(@!?U?P\w+)?\s*(.*?) *;")


def sass(text):
    """What nvdisasm writes, without what is no instruction or label."""
    kept_lines = []
    for line in text.split("\n"):
        if match := _INSTRUCTION.match(line):
            kept_lines.append(f"  {match[1] or '':<5} {match[2]}")
        elif re.match(r"[.$\w]+:$", line) and not line.startswith(".text"):
            kept_lines.append(line)
    return "".join(f"{line}\n" for line in kept_lines)
