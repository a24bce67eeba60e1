"""The tools behind the book.

`python3 docs/fusebook_docs --help` lists the commands; `extension` is the
Sphinx extension that turns recipes into pages. Everything outside
`extension` needs the standard library alone.
"""
