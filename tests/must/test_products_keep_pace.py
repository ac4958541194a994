"""pipe-a: products lost no cycle to the graph of stages, and the compiler names no kernel."""

import ast
import dataclasses
from pathlib import Path

import pytest

import sw
import tilewright as tw
from hw.arch.pcu import PcuProgram
from sw.ir.element_operations import OPERATIONS
from sw.kernels import modules

#: Cycles on the RTL of `tiny` in bf16 and int8, at the commit before the graph of stages
#: (0231aa9a): `tilewright run matmul --config tiny --set M=… --set N=… --set K=… --dtype …`.
CYCLES_BEFORE = {
    (8, 8, 8): (677, 674),
    (16, 16, 16): (1009, 907),
    (32, 32, 32): (2801, 1854),
    (64, 64, 64): (17200, 9153),
    (1, 64, 64): (3170, 1985),
    (64, 1, 64): (1948, 1436),
    (64, 64, 1): (2451, 2954),
    (7, 13, 29): (966, 914),
    (33, 17, 65): (3787, 2585),
    (24, 96, 40): (6506, 3704),
    (96, 24, 128): (19264, 10160),
    (48, 48, 200): (34401, 15740),
    (5, 100, 30): (2625, 2156),
    (100, 5, 30): (2387, 1669),
    (128, 64, 32): (17137, 9108),
}
#: Names of kernels that are words of the language, of the IR or of a PCU's program, too.
WORDS = {*tw.__all__, *OPERATIONS, *(each.name for each in dataclasses.fields(PcuProgram))}
ROOT = Path(sw.__file__).parent


@pytest.mark.slow
@pytest.mark.must("pipe-a", goal="30 products: bits of golden, none in more cycles than before")
@pytest.mark.parametrize("dtype", ["bf16", "int8"])
@pytest.mark.parametrize("shape", CYCLES_BEFORE, ids=lambda shape: "x".join(map(str, shape)))
def test_a_product_takes_no_more_cycles_than_before(shape, dtype, product, heavy, figure):
    before = dict(zip(("bf16", "int8"), CYCLES_BEFORE[shape], strict=True))[dtype]
    cycles = product("tiny", *shape, dtype=dtype).cycles()
    figure(f"{shape} {dtype}: {cycles:,} cycles, {before:,} before")
    assert cycles <= before


def words_of(source):
    """Names that a source defines or uses, and its texts."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=word) | ast.arg(arg=word) | ast.FunctionDef(name=word):
                yield word
            case ast.ClassDef(name=word) | ast.alias(name=word) | ast.Constant(value=str(word)):
                yield word


@pytest.mark.must("pipe-a", goal="no name of a kernel in sw outside of kernels/")
def test_the_compiler_names_no_kernel(figure):
    kernels = modules().keys() - WORDS
    files = [each for each in ROOT.rglob("*.py") if ROOT / "kernels" not in each.parents]
    found = [
        (file.relative_to(ROOT).as_posix(), word)
        for file in files
        for word in words_of(file.read_text(encoding="utf-8"))
        if word in kernels or word.startswith("sw.kernels")
    ]
    figure(f"{len(kernels)} names in {len(files)} files: {len(found)} times")
    assert not found
