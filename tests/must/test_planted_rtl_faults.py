"""slice-h: faults put into the emitted Verilog, each caught by the testbench of its block.

Nothing in the product knows of them: a fault is an edit of the text. Icarus runs the benches,
for it reads a text in no time. Each bench passes on the text as it is, with the same seed.
"""

import dataclasses
import functools
import importlib
import re

import pytest

from gen.design import Design
from gen.verilog import emit
from sim.cocotb.bench_runner import run_bench

#: The test of each bench that its faults must make fail, and a pattern of its parameters.
TESTS = {
    "accumulators": ("sums_of_random_passes_are_numpys", ".*formats=0"),
    "barrier": ("operations_of_any_order_move_the_state_by_the_rules", ".*reckless=0.0$"),
    "grid": ("vectors_meet_the_weights_of_their_tile", ".*fmt=0.*by_row=False"),
    "pmu": ("random_programs_are_numpys", ".*kind=matrices.*stall=0.3"),
    "switch": ("outputs_take_whole_packets_in_the_order_of_their_rotations", ".*stall=0.3"),
    "tma": ("boxes_of_four_streams_are_numpys_slices", ""),
}


@dataclasses.dataclass(frozen=True)
class Fault:
    """Edits of the Verilog of a block: patterns, each of which must be there, and what follows."""

    name: str
    block: str
    edits: tuple[tuple[str, str], ...]

    def planted(self, design: Design) -> Design:
        text = design.text
        for pattern, replacement in self.edits:
            text, count = re.subn(pattern, replacement, text, flags=re.DOTALL)
            assert count, f"{pattern} is not in the Verilog of {design.top}"
        return dataclasses.replace(design, text=text)


FAULTS = (
    # A reader may enter a slot exactly while it is not full.
    Fault("full parity", "pmu", ((r"(assign slot_ready_2 = \S+  )!=", r"\1=="),)),
    # A writer finds every lap of the ring free, as the first one is.
    Fault("empty parity", "pmu", ((r"(assign slot_ready_0 = \S+  != )\S+ ;", r"\g<1>1'h1;"),)),
    # A writer waits for its slots to be freed before it has ever filled them.
    Fault("initial empty parity", "pmu", ((r"(assign slot_ready_0 = \S+  )!=", r"\1=="),)),
    # The ring has a slot more than the program says.
    Fault("slot wrap", "pmu", ((r"(== )(\\config \[24:22\])", r"\1(\2 + 4'h1)"),)),
    # A load announces one beat of 8 bytes more than it brings.
    Fault(
        "transaction count off by one beat",
        "barrier",
        ((r"\$signed\(\{ 1'h0, i_expect \}\)", "(|i_expect ? i_expect + 9'sd8 : 9'sd0)"),),
    ),
    Fault(
        "multicast ready by OR",
        "switch",
        ((r"(module eager_fork_b\d+.*?assign o_ready = )[^;]*;", r"\1| (o_valid & i_ready);"),),
    ),
    Fault(
        "last write strobe",
        "tma",
        (
            (
                r"(assign axi__wstrb = )(\S+ )(\[71:64\];\n\s*assign axi__wlast = \S+ \[72\];)",
                r"\1{8{axi__wlast}} | \2\3",
            ),
        ),
    ),
    Fault("4 KiB split off by one", "tma", ((r"9'h100( - address)", r"9'h101\1"),)),
    # Sums go on at every tile of a pass but the second.
    Fault(
        "accumulate ignored at the second K tile",
        "accumulators",
        (
            (
                # The vector that enters the grid has its marks behind 64 bits of data.
                r"(\n  assign \S+  = core_o_issue & core_i_accumulate)"
                r"(?=;.*?\.i_moving\((\w+)\[63:0\]\))",
                r"""
  reg [7:0] tile = 0;
  always @(posedge clk)
    if (rst) tile <= 0;
    else if (core_o_issue & \2[64])
      tile <= \2[65] ? 0 : tile + 1;\1 & (tile != 1)""",
            ),
        ),
    ),
    Fault("weight swap one cycle early", "grid", ((r"(swap_0_1 <= )swap_0_0;", r"\1i_swap;"),)),
)


@functools.cache
def healthy(block):
    return emit(importlib.import_module(f"sim.tb.{block}").design())


def result_of(block, design, request, monkeypatch):
    """The bench's chosen tests on this Verilog."""
    monkeypatch.setenv("COCOTB_TEST_FILTER", "".join(TESTS[block]))
    seed = request.config.getoption("--seed-base")
    return run_bench(block, seed=seed, simulator="icarus", design=design)


@pytest.mark.slow
@pytest.mark.must("slice-h", goal="ten faults planted in emitted Verilog, each caught")
@pytest.mark.parametrize("block", sorted(TESTS))
def test_a_bench_passes_on_the_verilog_as_it_is(block, request, monkeypatch, heavy, figure):
    result = result_of(block, healthy(block), request, monkeypatch)
    assert result.failed == 0 < result.passed, result.failures
    figure(f"{len(FAULTS)} faults in {len(TESTS)} blocks, each caught")


@pytest.mark.slow
@pytest.mark.must("slice-h", goal="ten faults planted in emitted Verilog, each caught")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_planted_fault_is_caught(fault, request, monkeypatch, heavy, figure):
    result = result_of(fault.block, fault.planted(healthy(fault.block)), request, monkeypatch)
    assert result.failed > 0
    # The test that is named ran and found it: the text with the fault is right Verilog.
    name, _ = TESTS[fault.block]
    assert all(failure.startswith(name) for failure in result.failures), result.failures
    figure(f"{len(FAULTS)} faults in {len(TESTS)} blocks, each caught")
