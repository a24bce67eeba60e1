"""A link that opens a kernel in Compiler Explorer. All of it stands in the link:
JSON, compressed by zlib, in base 64 with the letters for URLs: Compiler Explorer
reads it by Node's `Buffer.from`, which takes both alphabets, with padding or
without."""

import base64
import json
import zlib

from ..errors import BookError

_PREFIX = "https://godbolt.org/clientstate/"
LONGEST = 8192  # what servers and browsers surely take
# What Compiler Explorer calls the compiler of the kernels that are kept.
COMPILER = "g122"


def link(source, options):
    state = {"sessions": [{
        "id": 1, "language": "c++", "source": source,
        "compilers": [{"id": COMPILER, "options": " ".join(options)}]}]}
    data = zlib.compress(json.dumps(state, separators=(",", ":")).encode(), 9)
    text = base64.urlsafe_b64encode(data).decode().rstrip("=")
    if len(_PREFIX) + len(text) > LONGEST:
        raise BookError(f"the link to Compiler Explorer has "
                        f"{len(_PREFIX) + len(text)} characters; {LONGEST} "
                        "are what every server takes")
    return _PREFIX + text


def opened(url):
    """What a link opens: source, options, compiler."""
    if not url.startswith(_PREFIX):
        raise BookError(f"not a link of Compiler Explorer: {url[:60]}")
    packed = url[len(_PREFIX):]
    data = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
    state = json.loads(zlib.decompress(data))
    session, = state["sessions"]
    compiler, = session["compilers"]
    return session["source"], compiler["options"].split(" "), compiler["id"]
