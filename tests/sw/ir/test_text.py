"""Text form: every kind of node reads back as it was."""

from pathlib import Path

import pytest

import sw.language as tw
from sw.ir.nodes import NODES
from sw.ir.parse import parse_program
from sw.ir.rewrite import walk
from sw.ir.sizes import choose_sizes
from sw.ir.text import print_program
from sw.passes.accumulate import accumulate
from sw.passes.check import check

#: All kinds, all attributes, all types; what it computes is nonsense.
EVERYTHING = (Path(__file__).parent / "all_kinds.txt").read_text()


def test_every_kind_reads_back_as_it_was():
    # What is not its default is written: "tb=false" is, so it goes away once.
    program = parse_program(EVERYTHING)
    text = print_program(program)
    assert text == EVERYTHING.replace("ta=true, tb=false", "ta=true")
    assert parse_program(text) == program
    assert {type(node) for node in walk(program.nodes)} == set(NODES.values())


def test_without_spans_the_text_has_no_path_and_reads_back_without_them():
    text = print_program(parse_program(EVERYTHING), spans=False)
    assert "f0" not in text and ".py" not in text and "@" not in text
    program = parse_program(text)
    assert print_program(program, spans=False) == text
    assert {node.span for node in walk(program.nodes)} == {None}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%a = frob", "line 2: expected kind of node, not 'frob'"),
        ("%a = buffer %b : tile<1 x 1, fp32>", "line 2: expected a value defined above, not '%b'"),
        ("tensor A : memory in [M] fp32", "line 2: expected '=', not ']'"),
        ("tensor A : memory in [M=1] fp64", "line 2: expected format, not 'fp64'"),
        ("loop.each i over x {", "line 2: expected number, not 'x'"),
        ("loop.each i over 4 {", "line -1: expected word, not 'end of text'"),
        ("§", "line 2: cannot read '§'"),
    ],
)
def test_what_is_no_text_of_a_program_is_refused_with_its_line(line, message):
    with pytest.raises(ValueError, match=message):
        parse_program(f"program p after trace\n{line}\n")


def test_the_page_on_the_ir_shows_a_program_as_it_is():
    page = (Path(__file__).parents[3] / "docs" / "ir.md").read_text()
    block = page.split("```text\n")[1].split("```")[0]

    def gemm(A, B, C):
        for i in tw.metapipe(10, 4):
            for j in tw.metapipe(8, 4):
                acc = tw.zeros(i, j)
                for k in tw.metapipe(12, 5):
                    a, b = tw.load_tile(A[i, k]), tw.load_tile(B[k, j])
                    acc += a @ b
                tw.store_tile(C[i, j], acc)

    kernel = tw.kernel("A[M, K], B[K, N] -> C[M, N]")(gemm)
    program = check(kernel.trace(M=10, K=12, N=8, dtype=tw.bf16))
    assert print_program(accumulate(choose_sizes(program)), spans=False) == block
