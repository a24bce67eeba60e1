"""When files were last changed."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import support  # noqa: F401  (where the tools are)

from fusebook_docs import history


class LastChanges(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="history-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name) / "checkout"
        self.root.mkdir()

    def git(self, *words, date="2026-01-02T03:04:05Z", folder=None):
        subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", *words],
            cwd=folder or self.root, check=True, capture_output=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.root),
                 "GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date})

    def commit(self, name, text, date):
        (self.root / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-m", text, date=date)

    def test_newest_commit_of_each_file(self):
        self.git("init", "-q")
        self.commit("one.rst", "a", "2026-01-02T12:00:00Z")
        self.commit("two.rst", "b", "2026-03-04T12:00:00Z")
        self.commit("one.rst", "c", "2026-05-06T12:00:00Z")
        self.assertEqual(history.last_changes(self.root),
                         {"one.rst": "2026-05-06", "two.rst": "2026-03-04"})

    def test_nothing_where_git_cannot_know(self):
        self.assertEqual(history.last_changes(self.root), {})

    def test_nothing_without_the_history(self):
        """Else every file would be as new as the newest commit."""
        self.git("init", "-q")
        self.commit("one.rst", "a", "2026-01-02T12:00:00Z")
        self.commit("two.rst", "b", "2026-03-04T12:00:00Z")
        clone = self.root.parent / "clone"
        self.git("clone", "-q", "--depth=1", f"file://{self.root}", str(clone))
        self.assertEqual(history.last_changes(clone), {})


if __name__ == "__main__":
    unittest.main()
