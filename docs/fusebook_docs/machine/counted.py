"""What matters in machine code, counted from its text: the hottest loop, and
what it loads and stores.

What a kernel has to load and store stands in its C++ text, in the functions
`load` and `store`; the loops of x86 assembly, PTX and SASS are compared with it.
"""

import re
from dataclasses import dataclass

from ..errors import BookError

_SIZES = {"float": 4, "double": 8, "f16": 2, "bf16": 2, "i16": 2}
_LIST = re.compile(r"Unaligned<(\w+)>\* (\w+);")
_LOADED = re.compile(r"x\.\w+ = .*\bat\.(\w+)\[i\]")
_STORED = re.compile(r"\bat\.(\w+)\[i\] = ")


@dataclass(frozen=True)
class Element:
    """Bytes that the lists of a kernel have for one element, by list."""

    loaded: dict
    stored: dict


@dataclass(frozen=True)
class Access:
    """One instruction's way to memory. `place` is its address without what it
    adds to it, and tells lists apart."""

    kind: str  # "load" or "store"
    width: int  # bytes
    place: str


@dataclass(frozen=True)
class Loop:
    """Lines [first, end) of a text, and what one round of them does."""

    first: int
    end: int
    accesses: tuple[Access, ...]
    calls: int = 0
    on_stack: int = 0
    jumped_over: int = 0  # calls that a jump before them may pass

    def of(self, kind):
        return [access for access in self.accesses if access.kind == kind]

    def bytes(self, kind):
        return sum(access.width for access in self.of(kind))

    def places(self, kind):
        return len({access.place for access in self.of(kind)})

    def widths(self, kind):
        return sorted({access.width for access in self.of(kind)})

    def elements(self, element):
        """How many elements a round does; a fraction where that is no number."""
        return self.bytes("store") / sum(element.stored.values())


def element(cpp):
    """What a kernel's C++ text says that it loads and stores: of its bodies, the
    one that moves most."""
    bodies = [_element(body) for body in _bodies(cpp)]
    if not bodies:
        raise BookError("the kernel has no body")
    most = max(bodies, key=lambda found: sum([*found.loaded.values(),
                                              *found.stored.values()]))
    if not most.stored:
        raise BookError("the kernel that the page would show stores no element; "
                        "choose another by kernel_with in docs/gallery.toml")
    return most


def _bodies(cpp):
    return re.split(r"^struct Body\d+ {$", cpp, flags=re.MULTILINE)[1:]


def loops(cpp):
    """How many loops a kernel has: one for each body."""
    return len(_bodies(cpp))


def moved(cpp):
    """The bytes that a kernel moves for an element; 0 for one that the page cannot
    count: it stores no element, or has lists of blocks."""
    try:
        found = element(cpp)
    except BookError:
        return 0
    return sum([*found.loaded.values(), *found.stored.values()])


def _element(body):
    pointers = body[body.index("  struct Pointers {"):]
    sizes = {name: _SIZES[kind] for kind, name in
             _LIST.findall(pointers[:pointers.index("\n  };")])}
    loads, stores = (found.findall(_function(body, name)) for found, name in
                     ((_LOADED, "load"), (_STORED, "store")))
    for name in (*loads, *stores):
        if name not in sizes:
            raise BookError(f"the list {name!r} of a kernel is not of single elements")
    return Element({name: sizes[name] for name in loads},
                   {name: sizes[name] for name in stores})


def _function(body, name):
    start = re.search(rf"  static FUSE_FN void {name}\((?:const )?Element&",
                      body)
    if start is None:
        raise BookError(f"the kernel has no function {name!r} for one element")
    return body[start.start():body.index("\n  }\n", start.start())]


# ---- x86

_MEMORY = re.compile(r"(?:(?P<size>[XYZ]MM|[QD]?)WORD|(?P<byte>BYTE)) PTR "
                     r"(?P<sign>-?)(?P<before>[\w.]*)\[(?P<inside>[^]]*)\]",
                     re.IGNORECASE)
_WIDTHS = {"ZMM": 64, "YMM": 32, "XMM": 16, "Q": 8, "D": 4, "": 2}
_X86_LABEL = re.compile(r"(\.L\w+):")
_X86_JUMP = re.compile(r"\s+j\w+\s+(\.L\w+)$")
_ONLY_READ = ("cmp", "test", "vucomi", "vcomi", "ucomi", "comi")


def x86_loop(lines):
    """The loop with the widest stores, of assembly in Intel's syntax."""
    framed = any(re.fullmatch(r"\s+mov\s+rbp, rsp", line) for line in lines)
    found = [_x86_round(lines, first, end, framed)
             for first, end in _loops(lines, _X86_LABEL, _X86_JUMP)]
    return _widest(found, "assembly")


def _x86_round(lines, first, end, framed):
    accesses, calls, on_stack = [], 0, 0
    stack = re.compile(r"\brsp\b|\brbp\b" if framed else r"\brsp\b")
    for line in lines[first:end]:
        words = line.split(None, 1)
        calls += words[0] == "call"
        if len(words) < 2 or words[0] == "lea":
            continue
        match = _MEMORY.search(words[1])
        if match is None or "rip" in match["inside"]:  # a constant
            continue
        if stack.search(match["inside"]):
            on_stack += 1
            continue
        is_store = (match.start() == 0
                    and not words[0].startswith(_ONLY_READ))
        width = 1 if match["byte"] else _WIDTHS[match["size"].upper()]
        accesses.append(Access("store" if is_store else "load", width,
                               re.sub(r"\s*[+-]\s*\d+$", "", match["inside"])))
    return Loop(first, end, tuple(accesses), calls, on_stack)


# ---- PTX

_PTX_LABEL = re.compile(r"(\$L\w+):")
_PTX_JUMP = re.compile(r"\s+(?:@!?%p\d+\s+)?bra(?:\.uni)?\s+(\$L\w+);")
_PTX_ACCESS = re.compile(r"\s+(?:@!?%p\d+\s+)?(ld|st)\.(global|local)"
                         r"(?:\.\w+)*?(?:\.v(\d))?\.[a-z](\d+)\s+(.*);")
_PTX_PLACE = re.compile(r"\[(%rd\d+)")


def ptx_loop(lines):
    """The loop with the widest stores to global memory."""
    found = [_ptx_round(lines, first, end)
             for first, end in _loops(lines, _PTX_LABEL, _PTX_JUMP)]
    return _widest(found, "PTX")


def _ptx_round(lines, first, end):
    accesses, calls, local = [], 0, 0
    for line in lines[first:end]:
        calls += "\tcall" in line
        match = _PTX_ACCESS.match(line)
        if match is None:
            continue
        if match[2] == "local":
            local += 1
            continue
        width = int(match[4]) // 8 * int(match[3] or 1)
        accesses.append(Access("load" if match[1] == "ld" else "store", width,
                               _PTX_PLACE.search(match[5])[1]))
    return Loop(first, end, tuple(accesses), calls, local)


# ---- SASS

_SASS_LABEL = re.compile(r"(\.L_x_\d+):")
_SASS_JUMP = re.compile(r"\s+(?:@!?U?P\d+ +)?BRA(?:\.\w+)* (?:!?U?P\d+, )?"
                        r"`\((\.L_x_\d+)\)")
_SASS_ACCESS = re.compile(r"\s+(?:@!?U?P\d+ +)?(LD|ST)([GL])((?:\.\w+)*) (.*)")
_SASS_PLACE = re.compile(r"\[(R\d+)")
_SASS_WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}


def sass_loop(lines):
    """The loop with the widest stores to global memory."""
    found = [_sass_round(lines, first, end)
             for first, end in _loops(lines, _SASS_LABEL, _SASS_JUMP)]
    return _widest(found, "SASS")


def _sass_round(lines, first, end):
    accesses, calls, local, over = [], 0, 0, 0
    passed = set()  # labels that jumps before this line lead to
    for line in lines[first:end]:
        if label := _SASS_LABEL.match(line):
            passed.discard(label[1])
        elif (jump := _SASS_JUMP.match(line)) and "@" in line:
            passed.add(jump[1])
        elif " CALL." in line:
            calls, over = (calls, over + 1) if passed else (calls + 1, over)
        elif match := _SASS_ACCESS.match(line):
            if match[2] == "L":
                local += 1
                continue
            width = next((_SASS_WIDTHS[word] for word in match[3].split(".")
                          if word in _SASS_WIDTHS), 4)
            accesses.append(Access("load" if match[1] == "LD" else "store", width,
                                   _SASS_PLACE.search(match[4])[1]))
    return Loop(first, end, tuple(accesses), calls, local, over)


# ---- all of them

def _loops(lines, label, jump):
    """Lines from a label to a jump back to it, without loops inside."""
    at, found = {}, []
    for number, line in enumerate(lines):
        if match := label.match(line):
            at[match[1]] = number
        elif (match := jump.match(line)) and match[1] in at:
            found.append((at[match[1]], number + 1))
    return [(first, end) for first, end in found
            if not any(first <= a and b <= end and (a, b) != (first, end)
                       for a, b in found)]


def _widest(found, what):
    storing = [loop for loop in found if loop.of("store")]
    if not storing:
        raise BookError(f"the {what} has no loop that stores")
    return max(storing, key=lambda loop: (max(loop.widths("store")),
                                          loop.bytes("store")))
