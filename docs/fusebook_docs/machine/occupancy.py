"""How many of a GPU's warps a kernel leaves room for.

A multiprocessor has four parts with 16384 registers each; a warp takes them in
lots of 256, and a block stays whole.
"""

_WARPS = {75: 32, 80: 64, 86: 48, 89: 48, 90: 64, 100: 64, 120: 48}
SHOWN = tuple(_WARPS)
_PARTS, _REGISTERS, _LOT, _LANES = 4, 16384, 256, 32


def warps(architecture):
    """What a multiprocessor holds at most."""
    return _WARPS[architecture]


def resident(architecture, registers, threads):
    """The warps that it holds of a kernel, in whole blocks of `threads`."""
    per_warp = -(-registers * _LANES // _LOT) * _LOT
    room = min(_REGISTERS // per_warp * _PARTS, _WARPS[architecture])
    block = threads // _LANES
    return room // block * block
