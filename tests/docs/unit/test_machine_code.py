"""Machine code is counted by what is written down here by hand; and what the
kernels that are kept say of themselves."""

import subprocess
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

import support  # noqa: F401 - finds the package
from support import ROOT, BookCase

from fusebook_docs.book import Book
from fusebook_docs.errors import BookError
from fusebook_docs.machine import counted, explorer, kept, making, occupancy, promises

CPP = """\
template <class T>
FUSE_FN T mul(T a, T b) {
  return a * b;
}
struct Body0 {
  struct Pointers {
    Unaligned<float>* a;
    Unaligned<double>* b;
    Unaligned<bf16>* c;
  };
  static FUSE_FN void load(Element& x, const Pointers& at, i64 i) {
    x.a = at.a[i];
    x.b = at.b[i];
    x.c = Memory<bf16>::load(at.c[i]);
  }
  static FUSE_FN void store(const Element& x, const Pointers& at, i64 i) {
    at.b[i] = x.b;
    at.c[i] = Memory<bf16>::store(x.c);
  }
};
"""
# A loop of scalars, and one of vectors that reads a list twice.
X86 = """\
fuse_run:
  mov       rbp, rsp
.L2:
  vmovss    xmm0, DWORD PTR [rdi+rax*4]
  vmovss    DWORD PTR [rsi+rax*4], xmm0
  jne       .L2
.L3:
  vmovups   ymm0, YMMWORD PTR [rdi+rax]
  vaddps    ymm1, ymm0, YMMWORD PTR [rsi+rax]
  vmulps    ymm1, ymm1, YMMWORD PTR [rsi+rax]
  vmulps    ymm1, ymm1, YMMWORD PTR .LC0[rip]
  lea       rdx, [rdi+rax]
  vmovups   YMMWORD PTR [rsi+rax], ymm1
  vmovups   YMMWORD PTR 32[rsi+rax], ymm0
  cmp       rax, QWORD PTR -8[rbp]
  jne       .L3
  ret
"""
PTX = """\
$L__BB0_1:
\tld.global.u64 \t%rd1, [%rd9+8];
$L__BB0_2:
\tld.global.v4.f32 \t{%f1, %f2, %f3, %f4}, [%rd1];
\tld.global.f64 \t%fd1, [%rd2+8];
\tst.global.v4.f32 \t[%rd3], {%f1, %f2, %f3, %f4};
\tst.local.f32 \t[%rd4], %f1;
\t@%p1 bra \t$L__BB0_2;
\t@%p2 bra \t$L__BB0_1;
\tret;
"""
# Two calls: one that the jump before it may pass, and one behind its label.
SASS = """\
fuse_kernel:
.L_x_1:
        LDG.E.64 R4, desc[UR12][R2.64+0x8]
  @P0   BRA `(.L_x_9)
.L_x_2:
        LDG.E.128 R16, desc[UR12][R16.64]
        LDG.E R20, desc[UR12][R26.64+0x20]
        LDG.E.U16 R21, desc[UR12][R26.64+0x40]
        LDL R22, [R1]
        BSSY B1, `(.L_x_4)
  @!P2  BRA P3, `(.L_x_3)
        CALL.REL.NOINC `($__internal_2_$__cuda_sm20_sqrt_rn_f32_slowpath)
.L_x_3:
        BSYNC B1
.L_x_4:
  @P1   STG.E.128 desc[UR12][R36.64], R12
        BRA `(.L_x_5)
.L_x_5:
        CALL.REL.NOINC `($far)
  @!P2  BRA `(.L_x_2)
        BRA `(.L_x_1)
.L_x_9:
        EXIT
"""
NVDISASM = """\
	.target	sm_90
//--------------------- .text.fuse_kernel         --------------------------
	.section	.text.fuse_kernel,"ax",@progbits
fuse_kernel:
.text.fuse_kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*00a0*/              @!P4 STS.U8 [R0+0x20], RZ ;
        /*00b0*/              @!UPT UIADD3 URZ, URZ, URZ, URZ ;
.L_x_80:
        /*0100*/                   EXIT  ;
"""


class Counting(unittest.TestCase):
    def test_an_element_as_the_text_says_it(self):
        self.assertEqual(counted.element(CPP), counted.Element(
            {"a": 4, "b": 8, "c": 2}, {"b": 8, "c": 2}))

    def test_a_kernel_that_stores_nothing_is_refused(self):
        text = "\n".join(line for line in CPP.split("\n")
                         if " = " not in line or " = at." in line)
        with self.assertRaisesRegex(BookError, "kernel_with in docs/gallery"):
            counted.element(text)

    def test_the_kernel_that_is_shown_is_the_one_that_moves_most(self):
        """Not a copy before it, and of those that move as many the first."""
        copy = CPP.replace("x.b = at.b[i];", "").replace("at.c[i] = Memory", "Memory")
        nothing = CPP.replace("struct Body0 {", "struct Runner {")
        blocks = CPP.replace("Unaligned<double>* b", "Blocks<double>* b")
        self.assertEqual([counted.moved(text) for text in (CPP, copy, nothing, blocks)],
                         [24, 14, 0, 0])
        other = CPP.replace("return a * b;", "return sign(a);")
        two = CPP + "struct Body1 {" + CPP.partition("struct Body0 {")[2]
        self.assertEqual(counted.loops(two), 2)
        self.assertEqual(making.by_traffic([two, copy, nothing, blocks, CPP, other]),
                         [CPP, other, copy, blocks])
        self.assertEqual(making.by_traffic([CPP, other], "sign"), [other])
        self.assertEqual(making.by_traffic([CPP], "sign"), [])

    def test_x86(self):
        loop = counted.x86_loop(X86.split("\n"))
        self.assertEqual((loop.first, loop.end), (6, 16))
        self.assertEqual(len(loop.of("load")), 3)
        self.assertEqual(loop.places("load"), 2)
        self.assertEqual(loop.widths("load"), [32])
        self.assertEqual((loop.bytes("load"), loop.bytes("store")), (96, 64))
        self.assertEqual(loop.places("store"), 1)
        self.assertEqual((loop.calls, loop.on_stack), (0, 1))

    def test_without_a_frame_rbp_is_a_register_like_others(self):
        text = X86.replace("  mov       rbp, rsp\n", "")
        self.assertEqual(counted.x86_loop(text.split("\n")).on_stack, 0)

    def test_as_clang_writes_it(self):
        text = X86
        for old, new in (("YMMWORD PTR", "ymmword ptr"),
                         ("[rdi+rax]", "[rdi + 4*rax]"),
                         ("32[rsi+rax]", "[rsi + 4*rax + 32]"),
                         ("[rsi+rax]", "[rsi + 4*rax]")):
            text = text.replace(old, new)
        loop = counted.x86_loop(text.split("\n"))
        self.assertEqual((len(loop.of("load")), loop.places("load"),
                          loop.bytes("store"), loop.places("store")),
                         (3, 2, 64, 1))

    def test_a_call_counts(self):
        text = X86.replace("  lea ", "  call      expf\n  lea ")
        self.assertEqual(counted.x86_loop(text.split("\n")).calls, 1)

    def test_ptx(self):
        loop = counted.ptx_loop(PTX.split("\n"))
        self.assertEqual((loop.first, loop.end), (2, 8))
        self.assertEqual([(a.kind, a.width) for a in loop.accesses],
                         [("load", 16), ("load", 8), ("store", 16)])
        self.assertEqual(loop.on_stack, 1)

    def test_sass(self):
        loop = counted.sass_loop(SASS.split("\n"))
        self.assertEqual((loop.first, loop.end), (4, 20))
        self.assertEqual([(a.kind, a.width, a.place) for a in loop.accesses],
                         [("load", 16, "R16"), ("load", 4, "R26"),
                          ("load", 2, "R26"), ("store", 16, "R36")])
        self.assertEqual((loop.calls, loop.jumped_over, loop.on_stack), (1, 1, 1))

    def test_only_instructions_and_labels_of_sass_are_kept(self):
        self.assertEqual(making.sass(NVDISASM), """\
fuse_kernel:
        LDC R1, c[0x0][0x28]
  @!P4  STS.U8 [R0+0x20], RZ
  @!UPT UIADD3 URZ, URZ, URZ, URZ
.L_x_80:
        EXIT
""")

    def test_no_loop_is_an_error(self):
        with self.assertRaisesRegex(BookError, "no loop that stores"):
            counted.x86_loop(["  ret"])


class Occupancy(unittest.TestCase):
    # As the CUDA C++ Programming Guide has it, under "Compute Capabilities".
    def test_what_a_multiprocessor_holds(self):
        self.assertEqual({each: occupancy.warps(each) for each in occupancy.SHOWN},
                         {75: 32, 80: 64, 86: 48, 89: 48, 90: 64, 100: 64, 120: 48})

    # As NVIDIA's occupancy calculator has it for blocks of 256 threads.
    def test_known_answers(self):
        for architecture, registers, warps in (
                (75, 64, 32), (75, 65, 24), (80, 32, 64), (80, 33, 48),
                (80, 40, 48), (80, 64, 32), (86, 40, 48), (86, 41, 40),
                (90, 48, 40), (90, 52, 32), (120, 255, 8)):
            with self.subTest(architecture=architecture, registers=registers):
                self.assertEqual(
                    occupancy.resident(architecture, registers, 256), warps)


class Link(unittest.TestCase):
    def test_all_of_it_comes_back(self):
        url = explorer.link("int x; // \u00e4 + / =\n", ["-O3", "-w"])
        self.assertEqual(explorer.opened(url),
                         ("int x; // \u00e4 + / =\n", ["-O3", "-w"], "g122"))
        self.assertRegex(url, r"\Ahttps://godbolt\.org/clientstate/[\w-]+\Z")

    def test_its_compiler_is_that_of_the_page(self):
        book = Book(ROOT)
        for name in book.recipe_names():
            if kept.exists(book, name):
                which, version = kept.load(book, name).compiler.split()
                major, minor, _ = version.split(".")
                self.assertEqual((which, explorer.COMPILER), ("g++", f"g{major}{minor}"))

    def test_one_that_is_too_long_is_refused(self):
        text = "".join(f"{i * i * 7919:x}" for i in range(4000))
        with self.assertRaisesRegex(BookError, "8192"):
            explorer.link(text, [])


class Kept(BookCase):
    def setUp(self):
        super().setUp()
        self.kernel = kept.load(Book(ROOT), "compiling_optimizer")

    def stored(self):
        kept.store(self.book, self.kernel)
        return kept.paths(self.book, "compiling_optimizer")

    def test_comes_back(self):
        self.stored()
        self.assertEqual(kept.load(self.book, "compiling_optimizer"),
                         self.kernel)

    def test_one_that_was_edited_is_refused(self):
        for name, path in self.stored().items():
            with self.subTest(name):
                before = path.read_text()
                path.write_text(before.replace("4", "5", 1))
                with self.assertRaisesRegex(BookError, "edited after"):
                    kept.load(self.book, "compiling_optimizer")
                path.write_text(before)

    def test_what_must_hold(self):
        x86, ptx, sass = map(self.kernel.texts.get, ("x86", "ptx", "sass"))
        for name, text, words in (
                ("x86", x86.replace("vmovups   ymm", "vmovups   xmm")
                           .replace("YMMWORD", "XMMWORD"), "32 are promised"),
                ("x86", x86.replace("vsqrtps   ymm", "call      sqrtf\n"
                                    "  vsqrtps   ymm"), "makes 1 calls"),
                ("x86", x86.replace("  vsqrtps   ymm", "  vmovaps   ymm12, "
                                    "YMMWORD PTR 8[rsp]\n  vsqrtps   ymm"),
                 "goes to the stack"),
                ("ptx", ptx.replace("v4.f32", "v2.f32"), "16 are promised"),
                ("sass", sass.replace(".128", ".64"), "SASS: the loop has loads"),
                ("sass", sass.replace(" MUFU.RSQ", " LDL R1, [R1]\n        MUFU.RSQ"),
                 "SASS: the loop goes to the stack")):
            with self.subTest(words):
                self.assertNotEqual(text, self.kernel.texts[name])
                broken = replace(self.kernel,
                                 texts={**self.kernel.texts, name: text})
                self.assertIn(words, " ".join(promises.broken(broken)))
        for change, words in (({"spill_loads": 4}, "spills"),
                              ({"registers": 65}, "65 registers")):
            gpu = replace(self.kernel.gpus[0], **change)
            broken = replace(self.kernel, gpus=(gpu,))
            self.assertIn(words, " ".join(promises.broken(broken)))
        self.assertIn("for no GPU",
                      " ".join(promises.broken(replace(self.kernel, gpus=()))))

    def test_a_change_is_noticed(self):
        for name in kept.TEXTS:
            texts = {**self.kernel.texts, name: "another\n"}
            found = promises.differences(self.kernel,
                                         replace(self.kernel, texts=texts))
            self.assertEqual(list(found),
                             [f"{name}.txt is no longer what is generated"])
        texts = {**self.kernel.texts, "x86": "another\n"}
        other = replace(self.kernel, texts=texts, compiler="g++ 13.3.0")
        self.assertEqual(list(promises.differences(self.kernel, other)), [])
        texts = {**self.kernel.texts, "sass": "another\n"}
        other = replace(self.kernel, texts=texts, nvdisasm="nvdisasm 14.0")
        self.assertEqual(list(promises.differences(self.kernel, other)), [])


class OfTheBook(unittest.TestCase):
    book = Book(ROOT)
    # Those of a recipe in Python are its optimizers'.
    names = [path.stem for path in sorted((ROOT / "recipes").glob("*.cpp"))]

    def test_every_recipe_has_its_kernel_and_it_holds(self):
        for name in self.names:
            with self.subTest(name):
                kernel = kept.load(self.book, name)
                self.assertEqual(list(promises.broken(kernel)), [])

    def test_adam_moves_the_bytes_that_its_recipe_prints(self):
        text = self.book.sample_paths("cpu", "compiling_optimizer")[0].read_text()
        self.assertIn("bytes per element: 28\n", text)
        kernel = kept.load(self.book, "compiling_optimizer")
        element, loop = kernel.element(), kernel.ptx_loop()
        self.assertEqual(sum([*element.loaded.values(),
                              *element.stored.values()]), 28)
        self.assertEqual(loop.bytes("load") + loop.bytes("store"),
                         28 * loop.elements(element))

    def test_a_link_opens_what_is_kept(self):
        for name in self.names:
            with self.subTest(name):
                kernel = kept.load(self.book, name)
                source, options, _ = explorer.opened(
                    explorer.link(kernel.texts["cpp"], kernel.options))
                self.assertEqual((source, tuple(options)),
                                 (kernel.texts["cpp"], kernel.options))
                self.assertNotIn("#include", source)

    def test_what_a_link_opens_compiles_alone(self):
        # The tests machine_code.NAME compile that of every recipe.
        kernel = kept.load(self.book, "compiling_optimizer")
        source, options, _ = explorer.opened(
            explorer.link(kernel.texts["cpp"], kernel.options))
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "a.cpp").write_text(source)
            done = subprocess.run(
                [*making.host_compiler(), *options, "-c", "a.cpp"],
                cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
