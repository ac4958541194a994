"""Element operations: one entry makes one for the language, the IR, golden and the docs."""

from tests.edited_copy import edited_copy, python_in

KERNEL = """
import sys
import numpy as np
import tilewright as tw

@tw.kernel("A[M, N]: fp32 -> C[M, N]: fp32")
def cubes(A, C):
    for i in tw.each(A.shape[0]):
        tw.store_tile(C[i, :], tw.cube(tw.load_tile(A[i, :])))
"""

PROGRAM = """
import linecache
import numpy as np
from kernels import cubes, tw
from docs.tools.generated import GENERATED
from sim.golden import golden
from sw.ir.parse import parse_program
from sw.ir.text import print_program
from sw.ir.verify import verify
from sw.language.idioms import HABITS

program = cubes.trace(M=6, N=3, dtype=tw.fp32)
text = print_program(program)
again = parse_program(text)
verify(again)
assert print_program(again) == text
a = np.arange(18, dtype=np.float32).reshape(6, 3) - 9
found = golden(again, {"A": a})["C"]
assert found.dtype == np.float32 and (found == a**3).all()
try:
    tw.cube(1, 2)
except tw.ProgramError as error:
    print(error)
print(next(line.strip() for line in text.splitlines() if "cube" in line and "map" in line))
print(HABITS["cube"], tw.cube.__doc__)
print(next(line for line in GENERATED["element-operations"].make().splitlines() if "cube" in line))
"""


def test_an_operation_is_one_entry(tmp_path):
    entry = (
        'ElementOperation("cube", lambda x: elementwise.multiply(x, elementwise.multiply(x, x)), '
        'operands=1, text="x³"),'
    )
    tanh = r'_function\("tanh".*$'
    edited_copy(tmp_path, "sw/ir/element_operations.py", tanh, entry)
    (tmp_path / "kernels.py").write_text(KERNEL, encoding="utf-8")
    refused, node, hint, row = python_in(tmp_path, "-c", PROGRAM)
    assert "`cube` takes (x), not 2 arguments" in refused
    assert "= map.cube %" in node
    assert hint == "`tw.cube` Return x³."
    assert row == "| `map.cube` | `cube(x)` | fp32 | x³ |"
