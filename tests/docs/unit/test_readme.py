"""Sections of the README, as the site shows them."""

from support import BookCase

from fusebook_docs import readme
from fusebook_docs.errors import BookError

TEXT = """# Toys

## Rules

One line
and its end.

- first
  goes on
- second

| `--toy` | means |
|---|---|
| `a` | one \\| two |

```sh
# no heading
play
```

## Next

Nothing.
"""


class Readme(BookCase):
    def setUp(self):
        super().setUp()
        (self.root / "README.md").write_text(TEXT)

    def test_blocks_of_a_section(self):
        blocks = readme.section(self.book, "Rules")
        self.assertEqual([block.kind for block in blocks],
                         ["paragraph", "list", "table", "code"])
        self.assertEqual(blocks[0].text, "One line and its end.")
        self.assertEqual(blocks[1].items, ["first goes on", "second"])
        self.assertEqual(blocks[2].rows,
                         [["`--toy`", "means"], ["`a`", "one | two"]])
        self.assertEqual(blocks[3].lines, ["# no heading", "play"])

    def test_one_table(self):
        table = readme.table(self.book, "`--toy`")
        self.assertEqual(len(table.rows), 2)

    def test_what_is_not_there(self):
        with self.assertRaisesRegex(BookError, "README.md or .*: no heading 'Laws'"):
            readme.section(self.book, "Laws")
        with self.assertRaisesRegex(BookError, "no table with the head 'x'"):
            readme.table(self.book, "x")
