"""Where the book keeps things."""

import re
from dataclasses import dataclass
from pathlib import Path

from .errors import BookError

NAME = re.compile(r"[a-z][a-z0-9_]*")
SUFFIXES = (".cpp", ".py")  # of recipes
SIMULATED = "cuda_sim"  # samples of the simulated GPU


@dataclass(frozen=True)
class Book:
    """The folders of one checkout, and the names in them."""

    root: Path
    kept_samples: Path | None = None  # where samples are, if elsewhere

    @classmethod
    def here(cls):
        return cls(Path(__file__).resolve().parents[2])

    @property
    def recipes(self):
        return self.root / "recipes"

    @property
    def samples(self):
        return self.kept_samples or self.root / "docs" / "samples"

    @property
    def exercises(self):
        return self.root / "docs" / "exercises"

    @property
    def operations(self):
        return self.root / "kernels" / "ops" / "ops.def"

    @property
    def elements(self):
        """Where the operators on elements are declared."""
        return self.root / "common" / "foreach" / "map_element.h"

    def gpu_code(self):
        """What runs on a GPU and is no generated text."""
        kernels, common = self.root / "kernels", self.root / "common"
        headers = [kernels / "prelude" / name for name in (
            "target.h", "launch.h", "half.h", "math.h", "gpu_layout.h",
            "gpu_loops.h", "gpu_sums.h", "sums.h")]
        return [*(path for path in headers if path.is_file()),
                *sorted([*kernels.rglob("*.cu"), *common.rglob("*.cu")])]

    def recipe_names(self):
        return sorted(path.stem for path in self.recipes.iterdir()
                      if path.suffix in SUFFIXES)

    def exercise_names(self, recipe):
        folder = self.exercises / recipe
        return sorted(path.stem for path in folder.glob("*.patch"))

    def devices(self, recipe, exercise=None):
        """Devices that have a sample, the CPU first."""
        stem = sample_stem(recipe, exercise)
        found = {
            path.parent.name
            for suffix in ("txt", "json")
            for path in self.samples.glob(f"*/{stem}.{suffix}")
        }
        return sorted(found, key=lambda device: (device != "cpu", device))

    def recipe_path(self, recipe):
        check_name("recipe", recipe)
        for suffix in SUFFIXES:
            path = self.recipes / f"{recipe}{suffix}"
            if path.is_file():
                return path
        known = ", ".join(self.recipe_names()) or "none"
        raise BookError(f"unknown recipe {recipe!r}; known: {known}")

    def patch_path(self, recipe, exercise):
        check_name("exercise", exercise)
        return self.exercises / recipe / f"{exercise}.patch"

    def answer_path(self, recipe, exercise):
        """What an answer says besides what its program prints."""
        check_name("exercise", exercise)
        return self.exercises / recipe / f"{exercise}.rst"

    def sample_paths(self, device, recipe, exercise=None):
        """The two files of a sample: stable text, and what varies."""
        check_name("device", device)
        folder = self.samples / device
        stem = sample_stem(recipe, exercise)
        return folder / f"{stem}.txt", folder / f"{stem}.json"

    def show(self, path):
        """A path as people should read it: from the root of the book."""
        try:
            return Path(path).resolve().relative_to(self.root.resolve())
        except ValueError:
            return Path(path)


def sample_stem(recipe, exercise=None):
    return recipe if exercise is None else f"{recipe}.{exercise}"


def capture_command(recipe, device):
    """What a person types to make a sample."""
    device_option = "" if device == "cpu" else f" --device {_option(device)}"
    return f"./fusebook capture {recipe}{device_option}"


def _option(device):
    """The device that a sample's folder belongs to."""
    return "cuda-sim" if device == SIMULATED else "cuda"


def check_name(what, name):
    if not NAME.fullmatch(name):
        raise BookError(
            f"{what} {name!r} is not a valid name: use lower-case letters, "
            "digits and underscores, and begin with a letter"
        )
