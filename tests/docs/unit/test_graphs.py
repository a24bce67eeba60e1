"""Pictures of logged graphs: what stands where, and what is an error."""

import re
import unittest

from support import ROOT  # noqa: F401 (puts the tools on the path)

from fusebook_docs import graphs
from fusebook_docs.errors import BookError

LOG = '''[graph] step
digraph "step recorded" {
  v0 [label="params", shape=ellipse];
  v1 [label="0.5 < 1 \\"half\\"", shape=ellipse, style=dashed];
  v2 [label="mul", shape=box];
  v0 -> v2;
  v1 -> v2;
  vstore0 [label="store params", shape=box, style=bold];
  v2 -> vstore0;
}
digraph "step planned" {
subgraph cluster_0 {
  b0_0 [label="list", shape=ellipse];
}
}
'''


class Graphs(unittest.TestCase):
    def test_nodes_stand_below_what_they_are_made_of(self):
        nodes = graphs.read(LOG, "step recorded")
        self.assertEqual({n.label: n.rank for n in nodes.values()}, {
            "params": 0, '0.5 < 1 "half"': 0, "mul": 1, "store params": 2})
        self.assertEqual(nodes["v2"].inputs, ["v0", "v1"])
        self.assertEqual(list(graphs.read(LOG, "step planned")), ["b0_0"])

    def test_nothing_overlaps(self):
        nodes = graphs.read(LOG, "step recorded")
        self.assertLessEqual(nodes["v0"].left + nodes["v0"].width,
                             nodes["v1"].left)

    def test_picture(self):
        svg = graphs.svg(graphs.read(LOG, "step recorded"), "a < b")
        self.assertEqual(re.findall(r">([^<]+)</text>", svg), [
            "params", "0.5 &lt; 1 &quot;half&quot;", "mul", "store params"])
        self.assertEqual(len(re.findall("<path ", svg)), 3)
        self.assertIn('aria-label="a &lt; b"', svg)

    def test_a_graph_that_is_not_there(self):
        with self.assertRaisesRegex(BookError, "'step recorded', 'step pl"):
            graphs.read(LOG, "step guessed")


if __name__ == "__main__":
    unittest.main()
