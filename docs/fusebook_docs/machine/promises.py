"""What must hold of a recipe's kernel, whatever compiler made it."""

from . import kept

VECTOR = 32  # bytes: eight floats at once
PACK = 16  # bytes of a GPU's widest load
REGISTERS = 64


def broken(kernel):
    """Sentences about what does not hold."""
    element = kernel.element()
    yield from _broken_loop("x86 assembly", kernel.x86_loop(), element, VECTOR)
    yield from _broken_loop("PTX", kernel.ptx_loop(), element, PACK)
    yield from _broken_loop("SASS", kernel.sass_loop(), element, PACK)
    if not kernel.gpus:
        yield "was compiled for no GPU"
    for gpu in kernel.gpus:
        if gpu.spill_stores or gpu.spill_loads:
            yield f"spills registers on sm_{gpu.architecture}"
        if not 0 < gpu.registers <= REGISTERS:
            yield (f"uses {gpu.registers} registers on sm_{gpu.architecture}; "
                   f"at most {REGISTERS} are promised")


def _broken_loop(what, loop, element, width):
    if loop.calls:
        yield f"{what}: the loop makes {loop.calls} calls"
    if loop.on_stack:
        yield f"{what}: the loop goes to the stack {loop.on_stack} times"
    for kind, lists in (("load", element.loaded), ("store", element.stored)):
        if loop.widths(kind) != [width]:
            yield (f"{what}: the loop has {kind}s of {loop.widths(kind)} bytes; "
                   f"{width} are promised")
        if loop.places(kind) != len(lists):
            yield (f"{what}: the loop {kind}s {loop.places(kind)} lists; the "
                   f"kernel {kind}s {len(lists)}")
    if len(loop.of("store")) % len(element.stored):
        yield f"{what}: the loop does not store every list equally often"


def differences(page, made):
    """How a kernel differs from the one that is kept. Assembly is compared
    where the same compiler made both."""
    for name in kept.TEXTS:
        same = page.texts[name] == made.texts[name]
        if name == "x86" and page.compiler != made.compiler:
            continue
        if name in ("ptx", "sass") and page.nvrtc != made.nvrtc:
            continue
        if name == "sass" and page.nvdisasm != made.nvdisasm:
            continue
        if not same:
            yield f"{name}.txt is no longer what is generated"
    if page.options != made.options:
        yield "is compiled with other options: " + " ".join(made.options)
    if page.nvrtc == made.nvrtc and page.gpus != made.gpus:
        yield "takes other registers or memory on some GPU"
