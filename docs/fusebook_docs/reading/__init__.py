"""What people have read again since it was last changed.

Numbers, names and outputs are compared with what there is. Whether a sentence in
between is true no program can tell; only somebody who reads it can. `docs/read.txt`
says that somebody did: it has a row for each passage of the book, made by the command
`reread`. A passage that was edited since, and one whose code or output was, has no row.
"""
