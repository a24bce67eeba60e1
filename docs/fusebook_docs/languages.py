"""The languages that recipes are written in. Each is a module with the same names:
what a page says of it, and what literate.py has to know."""

from pathlib import PurePath

from . import cpp, python_code



def of(path):
    """The language of a recipe's file."""
    return python_code if PurePath(path).suffix == ".py" else cpp
