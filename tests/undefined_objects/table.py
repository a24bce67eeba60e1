#!/usr/bin/env python3
"""Checks that undefined_objects_test has a row for every public function that
may meet an object in which nothing is: one that was made without arguments, was
moved from or is undefined.

    table.py            says what is missing, or is there in vain; exit code 1
    table.py --list     says what is needed
"""

import re
import sys
from collections import Counter
from pathlib import Path

from public_members import ROOT, headers_from, public_functions

HERE = Path(__file__).resolve().parent

# All that a program of a user or a recipe includes.
ROOTS = [ROOT / "common" / name
         for name in ("fusebook.h", "nn/matmul.h", "tensor/pointwise.h")]

# Machinery that no user of the library names. Whoever moves a class of these
# into the hands of users takes its header off the list.
INTERNAL = {
    "batch_memory.h",
    "broadcast.h",
    "column_reads.h",
    "compiled_program.h",
    "compiled_state.h",
    "each_scalar.h",
    "facts.h",
    "gradient_source.h",
    "group_batches.h",
    "joined_numbers.h",
    "kernel_store.h",
    "like_groups.h",
    "list_places.h",
    "map_scope.h",
    "number_changes.h",
    "one_thread.h",
    "param_names.h",
    "promotion.h",
    "provenance.h",
    "recent_batches.h",
    "recompile.h",
    "recorder.h",
    "split_program.h",
    "tracer.h",
    "undefined.h",
    "undo.h",
}

# Numbers and texts: empty is a value like any other.
PLAIN = {
    "Callee",
    "Counters",
    "Device",
    "Generator",
    "NoGradGuard",
    "OptionSet",
    "Options",
    "RecompileError",
    "RecompileReport",
    "StateFields",
    # What tensors and lists are made of; users have handles.
    "ListImpl",
    "TensorImpl",
    # For the templates of foreach_map and capture_graph.
    "GraphCapture",
    "MapCall",
    # What an optimizer keeps, behind its state functions.
    "BatchCache",
    "StateStore",
}

# Types that are no class of a public header.
ALIASES = {
    "Backward",
    "Clock",
    "Formula",
    "GroupOptions",
    "Hook",
    "LRLambda",
    "NamedParams",
    "NamedTensors",
    "Operands",
    "SchedulerList",
    "ParamStates",
    "StateDict",
    "TensorMap",
    "shared_ptr",
}


def is_options(name):
    """Numbers, texts, and values for each group, which have rows of their own."""
    return name.endswith("Options")


def needed():
    """How many rows each function needs, one for every overload; and the names of
    all public functions."""
    functions = []
    classes = set(ALIASES)
    for header in sorted({each for root in ROOTS for each in headers_from(root)}):
        if header.name in INTERNAL:
            continue
        found = public_functions(header)
        functions += found
        classes |= {each.name.rsplit("::", 1)[0] for each in found if "::" in each.name}
    handles = {each for each in classes if each not in PLAIN and not is_options(each)}
    rows = Counter()
    for function in functions:
        owner = function.name.rpartition("::")[0]
        if owner.split("::")[0] in PLAIN or is_options(owner):
            continue
        given = set(re.findall(r"\w+", function.parameters))
        if "std::function" in function.parameters:
            given |= handles
        constructor = owner.endswith(function.name.rpartition("::")[2])
        if (owner and not constructor) or given & handles:
            rows[function.name] += 1
    return rows, {each.name for each in functions}


def there():
    rows = Counter()
    for part in sorted(HERE.glob("*.cpp")):
        rows.update(re.findall(r'^\s*(?:\{|answer\()\s*"([^"]+)",', part.read_text(), re.M))
    return rows


def main():
    (wanted, public), found = needed(), there()
    if sys.argv[1:] == ["--list"]:
        for name, count in wanted.items():
            print(count, name)
        return 0
    wrong = 0
    for name, count in sorted((wanted - found).items()):
        print(f"{name}: {count} rows are missing in the table of "
              "tests/undefined_objects, one for each overload")
        wrong += 1
    for name in sorted(found.keys() - public):
        print(f"{name}: a row for no public function")
        wrong += 1
    print(f"{sum(wanted.values())} functions, {sum(found.values())} rows")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
