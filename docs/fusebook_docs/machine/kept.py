"""What is kept of a recipe's kernel: `docs/kernels/<recipe>/` holds its texts,
and `made.json` what made them, with a digest over all of it.

The numbers on the page are counted from the texts whenever it is built.
"""

import hashlib
import json
from dataclasses import dataclass

from .. import samples
from ..errors import BookError
from . import counted

FORMAT = 2
# What can be read of a kernel, in the order of the tabs.
TEXTS = ("cpp", "cuda", "x86", "ptx", "sass")
_SUFFIXES = {"cpp": "cpp", "cuda": "cu", "x86": "s", "ptx": "ptx",
             "sass": "sass"}
_FACTS = {"compiler": str, "options": list, "nvrtc": str, "nvdisasm": str,
          "gpus": list}


@dataclass(frozen=True)
class Gpu:
    """What a kernel takes on GPUs of an architecture, 90 for 9.0. Spills are
    bytes of a thread, stored and loaded."""

    architecture: int
    registers: int
    spill_stores: int
    spill_loads: int
    shared_bytes: int

    @classmethod
    def read(cls, line):
        """From a line of gpu_code_check's report."""
        return cls(*map(int, line.split()))


@dataclass(frozen=True)
class Kernel:
    """A kernel's texts by name, and what made them."""

    recipe: str
    texts: dict
    compiler: str  # of the x86 assembly: "g++ 12.2.0"
    options: tuple[str, ...]
    nvrtc: str
    nvdisasm: str  # of the SASS: "nvdisasm 13.2"
    gpus: tuple[Gpu, ...]

    def lines(self, name):
        return self.texts[name].split("\n")

    def element(self):
        return counted.element(self.texts["cpp"])

    def x86_loop(self):
        return counted.x86_loop(self.lines("x86"))

    def ptx_loop(self):
        return counted.ptx_loop(self.lines("ptx"))

    def sass_loop(self):
        return counted.sass_loop(self.lines("sass"))


def command(recipe):
    """What a person types to keep a kernel."""
    return f"./fusebook capture kernels {recipe}"


def folder(book, recipe):
    return book.root / "docs" / "kernels" / recipe


def paths(book, recipe):
    """Every file, by the name of its text; `made` is not a text."""
    here = folder(book, recipe)
    return {**{name: here / f"{name}.txt" for name in TEXTS},
            "made": here / "made.json"}


def file_names(recipe):
    """What the texts are called where readers download them."""
    return {name: f"{recipe}.kernel.{suffix}"
            for name, suffix in _SUFFIXES.items()}


def exists(book, recipe):
    return paths(book, recipe)["made"].is_file()


def _digest(document, texts):
    whole = json.dumps([document, texts], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


def _document(kernel):
    return {"format": FORMAT, "recipe": kernel.recipe,
            "compiler": kernel.compiler, "options": list(kernel.options),
            "nvrtc": kernel.nvrtc, "nvdisasm": kernel.nvdisasm,
            "gpus": [" ".join(map(str, vars(gpu).values()))
                     for gpu in kernel.gpus]}


def store(book, kernel):
    document = _document(kernel)
    document["digest"] = _digest(_document(kernel), kernel.texts)
    files = paths(book, kernel.recipe)
    samples.write_files({
        **{files[name]: kernel.texts[name] for name in TEXTS},
        files["made"]: json.dumps(document, indent=1) + "\n"})


def load(book, recipe):
    """Reads a kernel; one that was edited since it was captured is refused."""
    files = paths(book, recipe)
    show = book.show(files["made"])
    try:
        data = files["made"].read_bytes()
        texts = {name: files[name].read_text("utf-8") for name in TEXTS}
    except (OSError, UnicodeDecodeError) as error:
        raise BookError(f"the kernel of {recipe} cannot be read ({error}); "
                        f"make it with: {command(recipe)}", show) from None
    raw = samples.parse_json(data, show)
    digest = raw.pop("digest", None) if isinstance(raw, dict) else None
    if digest != _digest(raw, texts):
        raise BookError("the kernel was edited after it was captured: its texts "
                        "are not those that the digest was made of. Take them "
                        f"from the compilers: {command(recipe)}", show)
    for name, kind in _FACTS.items():
        if not isinstance(raw.get(name), kind):
            raise BookError(f"{name!r} must be {kind.__name__}", show)
    return Kernel(recipe, texts, raw["compiler"], tuple(raw["options"]),
                  raw["nvrtc"], raw["nvdisasm"],
                  tuple(Gpu.read(gpu) for gpu in raw["gpus"]))
