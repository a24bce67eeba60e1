"""What the tools say on pages, read from their own code."""

import ast

_SAYING = {"say": 1, "later": 1, "many": 2, "sentence": 1, "sentences": 2}


def strings(book):
    """(text, file) of every text that words.py is asked for, each once."""
    folder = book.root / "docs" / "fusebook_docs"
    found = {}
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            for text in _texts(node):
                found.setdefault(text, book.show(path).as_posix())
    return list(found.items())


def _texts(node):
    if not isinstance(node, ast.Call):
        return []
    name = getattr(node.func, "id", getattr(node.func, "attr", None))
    return [each.value for each in node.args[:_SAYING.get(name, 0)]
            if isinstance(each, ast.Constant) and isinstance(each.value, str)]
