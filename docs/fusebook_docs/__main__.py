"""Lets `python3 docs/fusebook_docs` run without any installation."""

import sys
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from fusebook_docs.cli import main

sys.exit(main())
