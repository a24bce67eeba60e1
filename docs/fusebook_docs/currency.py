"""Whether a sample still shows what the programs of today do.

The CPU's samples are compared with a run, by `verify`. No run can tell this of
a GPU's sample where there is no GPU, so it keeps the hashes of what it was made
from, and each of them is compared with what is known without a GPU:

- the recipe without its comments, and the code for GPUs that is not generated
  (the loops around every kernel, kernels written by hand), with the files of
  this checkout;
- what was generated for a GPU, with the sample of the CPU. Its text depends on
  the operations alone, so that a run on the CPU generates it as well, and
  `verify` sees to it that the CPU's sample has the hashes of today.
"""

import hashlib

from . import cpp
from .errors import BookError


def gpu_code(book):
    """SHA-256 of the code for GPUs in this checkout, without comments."""
    total = hashlib.sha256()
    for path in book.gpu_code():
        show = book.show(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BookError(f"cannot be read: {error}", show) from None
        total.update(f"{show} {cpp.fingerprint(text, show)}\n".encode())
    return total.hexdigest()


def is_stale(book, sample, source, cpu):
    """Was a sample captured before the last change of what it shows?

    `source` is the parsed recipe, `cpu` the CPU's sample of it or None.
    """
    if sample.source_sha256 != source.fingerprint:
        return True
    if sample.device == "cpu":
        return False
    if sample.gpu_code_sha256 != gpu_code(book):
        return True
    # A step that needs a GPU may have kernels that no CPU sees.
    return cpu is None or not set(cpu.kernels) <= set(sample.kernels)
