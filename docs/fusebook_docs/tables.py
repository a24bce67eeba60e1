"""The table that a step printed: names of columns, and rows of numbers.

It is what `print_columns` and `print_row` of a recipe print: names with two blanks or
more between them, then rows.
"""

import math
import re


def table(text):
    """The names of the columns and the rows of the only table in a text."""
    lines = [line.strip() for line in text.splitlines()]
    cells = [re.split(r"\s{2,}", line) for line in lines]
    numbers = [_numbers(line) for line in cells]
    first = next((i for i, row in enumerate(numbers) if row), 0)
    rows = [row for row in numbers[first:] if row]
    if first == 0 or len(rows) < 2:
        raise ValueError("it printed no table with a header and two rows")
    names = cells[first - 1]
    if {len(names)} != {len(row) for row in rows} or len(names) < 2:
        raise ValueError("its table has rows of different lengths")
    if not all(math.isfinite(value) for row in rows for value in row):
        raise ValueError("its table contains a number that is not finite")
    return names, rows


def _numbers(cells):
    try:
        return [float(cell) for cell in cells]
    except ValueError:
        return None
