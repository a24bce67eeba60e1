#include "fusebook/codegen/template_text.h"

#include <doctest/doctest.h>

#include <string>

#include "fusebook/support/error.h"
#include "support/testing.h"

using fuse::Error;
using fuse::fill;
using testing::message_of;

TEST_CASE("holes in a line are filled where they stand") {
  CHECK(fill("", {}).empty());
  CHECK(fill("int a;\n", {}) == "int a;\n");
  CHECK(fill("@type@ @name@ = f<@type@>();",
             {{"type", "double"}, {"name", "x"}}) == "double x = f<double>();");
  CHECK(fill("x@nothing@y", {{"nothing", ""}}) == "xy");
  CHECK(fill("@a@\n", {{"a", "1\n2"}}) == "1\n2\n");
}

TEST_CASE("a hole alone on a line takes all lines, indented as it is") {
  const std::string struct_text = R"(struct S {
  @fields@
};
)";
  CHECK(fill(struct_text, {{"fields", "int a;\nint b;\n"}}) ==
        "struct S {\n  int a;\n  int b;\n};\n");
  CHECK(fill(struct_text, {{"fields", ""}}) == "struct S {\n};\n");
  CHECK(fill(struct_text, {{"fields", "\n#if X\nint a;\n#endif\n"}}) ==
        "struct S {\n\n#if X\n  int a;\n#endif\n};\n");
  // What stands in a text is text.
  CHECK(fill("@a@", {{"a", "@b@"}}) == "@b@\n");
}

TEST_CASE("holes and texts belong together") {
  CHECK(message_of<Error>([] { fill("@a@ @b@", {{"a", "1"}}); }) ==
        "a template of generated code has no text for hole 'b'");
  CHECK(message_of<Error>([] { fill("@a@", {{"a", "1"}, {"b", "2"}}); }) ==
        "a template of generated code has no hole for text 'b'");
  CHECK(message_of<Error>([] { fill("x @a", {{"a", "1"}}); }) ==
        "a template of generated code has an unclosed hole '@a'");
}
