"""Breathe looks for a name in every file that Doxygen wrote, and works out the path
of each of them anew. Here a page asks for each file once."""

from breathe import parser


class CompoundParser(parser.DoxygenCompoundParser):
    def parse(self, refid):
        # Breathe keeps which page depends on which file, hence the page.
        key = self.app.env.docname, self.project_info.project_path(), refid
        if key not in self.cache:
            self.cache[key] = super().parse(refid)
        return self.cache[key]


def _create(factory, project_info):
    return CompoundParser(factory.app, factory.cache, project_info)


def setup(app):
    parser.DoxygenParserFactory.create_compound_parser = _create
