"""Which words of code are taken for names of the reference."""

import unittest

from support import ROOT  # noqa: F401 (puts the tools on the path)

from fusebook_docs.api import links

INDEX = links.Index(
    ["Adam", "Adam::step", "Adam::group", "Sequential", "Sequential::group",
     "compile", "linear", "step", "float32", "linear_stack", "Policy",
     "Policy::promote", "Tensor", "Tensor::backward"],
    ["lerp", "add", "step"])


def resolved(code):
    tokens = links.TOKEN.findall(code)
    own = links.declared(tokens)
    return [name for _, name in sorted(
        links.resolve(tokens, INDEX, own).items())]


class Links(unittest.TestCase):
    def test_classes_and_calls(self):
        self.assertEqual(resolved("Adam opt(params);"), ["Adam"])
        self.assertEqual(resolved("auto fn = compile([&] {});"), ["compile"])
        self.assertEqual(resolved("compile<F>(f)"), ["compile"])
        self.assertEqual(resolved("const auto m = linear_stack(10, 8);"),
                         ["linear_stack"])

    def test_what_the_code_declares_is_its_own(self):
        self.assertEqual(resolved("auto step = compile(f); step();"),
                         ["compile"])
        self.assertEqual(resolved("LinearLR linear(opt); linear.f(linear(x));"),
                         [])
        self.assertEqual(resolved("void f(const Tensor& compile) {}"),
                         ["Tensor"])

    def test_a_call_after_return_is_no_declaration(self):
        self.assertEqual(resolved("return compile(f);"), ["compile"])
        self.assertEqual(resolved("throw step(f);"), ["step"])

    def test_words_that_are_only_spelled_like_a_name(self):
        self.assertEqual(resolved("int linear; linear = 3;"), [])
        self.assertEqual(resolved("x + compile"), [])
        self.assertEqual(resolved("std::compile(f)"), [])
        self.assertEqual(resolved("my::Adam a;"), [])

    def test_members(self):
        self.assertEqual(resolved("loss.backward();"), ["Tensor::backward"])
        self.assertEqual(resolved("opt->step();"), ["Adam::step"])
        self.assertEqual(resolved("opt.group(0);"), [])  # of two classes
        self.assertEqual(resolved("Options{.step = 3, .backward = 4}"), [])

    def test_qualified(self):
        self.assertEqual(resolved("Policy::promote"),
                         ["Policy", "Policy::promote"])
        self.assertEqual(resolved("fuse::Adam a(x);"), ["Adam"])
        self.assertEqual(resolved("Policy::demote"), ["Policy"])

    def test_operations(self):
        self.assertEqual(resolved("foreach_lerp_(m, g, 0.1);"), ["op-lerp"])
        self.assertEqual(resolved("foreach_lerp(m, g, 0.1)"), ["op-lerp"])
        self.assertEqual(resolved("f(lerp(m, g, 0.1))"), ["op-lerp"])
        self.assertEqual(resolved("foreach_blend(m, g)"), [])
        self.assertEqual(resolved("lerp + 1"), [])

    def test_names_that_a_program_uses(self):
        self.assertEqual(
            links.used("Adam a(p); a.step(); Policy p = Policy::promote;",
                       INDEX),
            {"Adam", "Policy"})


if __name__ == "__main__":
    unittest.main()
