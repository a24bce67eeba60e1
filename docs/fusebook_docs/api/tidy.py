"""Makes Doxygen's XML what Breathe shows well.

What readers need not see goes: members that are none of theirs, `inline`, the
argument that tells errors where they were called from, lists of derived classes.
What Breathe would drop is kept: a `requires` clause becomes a sentence.
"""

import re
import xml.etree.ElementTree as xml

_PLACE = re.compile(r"std::source_location")
_PLACE_ARGUMENT = re.compile(
    r",?\s*(?:const )?std::source_location\s*&?\s*\w+\s*="
    r"\s*std::source_location::current\(\)")


def tidy(folder, reference):
    """Rewrites the files of public names in place."""
    public = {name.id: name for name in reference.public()}
    kept = _shorten_index(folder / "index.xml", public)
    for path in sorted(folder.glob("*.xml")):
        if path.name == "index.xml":
            continue
        if path.stem not in kept:
            path.unlink()
            continue
        tree = xml.parse(path)
        for compound in tree.getroot().findall("compounddef"):
            _tidy(compound, public)
        tree.write(path, encoding="utf-8", xml_declaration=True)


def replace(folder, fresh):
    """Moves files, but leaves those alone that say the same: pages made from
    them need not be read again."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {path.name for path in fresh.glob("*.xml")}
    for path in folder.glob("*.xml"):
        if path.name not in names:
            path.unlink()
    for name in names:
        old = folder / name
        text = (fresh / name).read_bytes()
        if not old.is_file() or old.read_bytes() != text:
            old.write_bytes(text)


def _shorten_index(path, public):
    """What Breathe looks through for every name; returns the files it names."""
    tree = xml.parse(path)
    root, kept = tree.getroot(), set()
    for compound in root.findall("compound"):
        of_namespace = compound.findtext("name") == "fuse"
        if not (of_namespace or compound.get("refid") in public):
            root.remove(compound)
            continue
        kept.add(compound.get("refid"))
        for member in compound.findall("member"):
            if member.get("refid") not in public:
                compound.remove(member)
    tree.write(path, encoding="utf-8", xml_declaration=True)
    return kept


def _tidy(compound, public):
    for tag in ("derivedcompoundref", "innerclass", "includes"):
        for element in compound.findall(tag):
            name = element.text or ""  # instances of a template tell nobody anything
            if element.get("refid") not in public or (
                    tag == "derivedcompoundref" and "<" in name):
                compound.remove(element)
    for section in compound.findall("sectiondef"):
        for member in section.findall("memberdef"):
            if member.get("id") in public:
                _member(member)
            else:
                section.remove(member)
        if section.find("memberdef") is None:
            compound.remove(section)
    _unlink(compound, public)


def _member(member):
    member.set("inline", "no")
    for parameter in member.findall("param"):
        kind = "".join(parameter.find("type").itertext())
        if _PLACE.search(kind) and parameter.find("defval") is not None:
            member.remove(parameter)
    arguments = member.find("argsstring")
    if arguments is not None and arguments.text:
        arguments.text = without_place(arguments.text)
    clause = member.find("requiresclause")
    if clause is not None:
        _say(member, "Takes part only where ", _text(clause), " holds.")
        member.remove(clause)


def without_place(arguments):
    """The list of arguments without the one that errors are told."""
    text = _PLACE_ARGUMENT.sub("", arguments)
    return re.sub(r"^\(\s*,\s*", "(", text)


def _say(member, before, code, after):
    """Adds a sentence to a description."""
    paragraph = xml.SubElement(member.find("detaileddescription"), "para")
    paragraph.text = before
    literal = xml.SubElement(paragraph, "computeroutput")
    literal.text = re.sub(r"^\((.*)\)$", r"\1", code)
    literal.tail = after


def _text(element):
    return " ".join("".join(element.itertext()).split())


def _unlink(element, public):
    """References to what no page shows become plain text."""
    for parent in element.iter():
        for child in list(parent):
            if child.tag == "ref" and child.get("refid") not in public:
                _replace_by_text(parent, child)


def _replace_by_text(parent, child):
    text = "".join(child.itertext()) + (child.tail or "")
    index = list(parent).index(child)
    parent.remove(child)
    if index == 0:
        parent.text = (parent.text or "") + text
    else:
        before = parent[index - 1]
        before.tail = (before.tail or "") + text
