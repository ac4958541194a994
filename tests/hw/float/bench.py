"""Every cell, sound and with planted faults, and the edge pieces in one native model.

Also what a cell answers, in numpy.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from gen.verilog import convert
from hw.array.cell import Cell
from hw.float.aligned_sum import cast_to_bf16
from hw.float.recode import OPERAND_BITS, recode
from hw.numeric import reference
from hw.numeric.formats import bf16, fp32, int8, int32
from tests.native.library import build_library

__all__ = [
    "CELLS",
    "EARLY_SWAP",
    "FAULTS",
    "FORMATS",
    "Bench",
    "Edge",
    "Stimulus",
    "expected_sums",
    "random_stimulus",
    "sums",
]

Array = npt.NDArray[Any]

FORMATS = {"bf16": (bf16,), "int8": (int8,), "both": (bf16, int8)}
LATENCIES = (1, 2, 3)

#: Names of the sound cells.
CELLS = {f"{name}_{latency}": (name, latency) for name in FORMATS for latency in LATENCIES}

#: Statement of an emitted bf16 cell of latency 2 to find, and its replacement.
FAULTS = {
    "sticky_lost": (r"assign sticky = .*;", "assign sticky = 1'h0;"),
    "tie_up": (r"assign round_up = .*;", "assign round_up = half_or_more;"),
    "tie_down": (r"assign round_up = .*;", "assign round_up = over_half;"),
    "negation_carry_lost": (r"assign fill = .*;", "assign fill = 1'h0;"),
    "underflow_unlimited": (r"assign limited = .*;", "assign limited = 1'h0;"),
    "subnormal_addend_exponent": (r"assign addend_normal = .*;", "assign addend_normal = 1'h1;"),
    "nan_from_fraction_only": (r"assign nan = .*;", "assign nan = product_nan;"),
    "swap_late": (r"if \(i_swap\)", "if (o_swap)"),
}

#: Faults made by the wiring: this instance's swap comes a cycle before its activation.
EARLY_SWAP = "swap_early"

#: Outputs that are not cells'.
EDGES = ("recoded", "cast")


class Edge(wiring.Component):
    """The recoding and the cast, combinational, as a component."""

    bits: Signal
    recoded: Signal
    sum_: Signal
    cast: Signal

    def __init__(self) -> None:
        super().__init__(
            {"bits": In(16), "recoded": Out(OPERAND_BITS), "sum_": In(32), "cast": Out(16)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.recoded.eq(recode(m, self.bits, fill_is_zero=True))
        m.d.comb += self.cast.eq(cast_to_bf16(m, self.sum_))
        return m


class Stimulus(NamedTuple):
    """What the cells see in each cycle (``a`` and ``w`` are bits before the recoding)."""

    a: Array
    w: Array
    p: Array
    swap: Array
    load: Array


def sums(a: Array, w: Array, p: Array, mode: int) -> Array:
    """Bits of ``p + a * w`` (bf16), or of ``p`` and two products (int8 pairs), elementwise."""
    if mode == 0:
        terms = bf16.from_bits(a), bf16.from_bits(w)
        return fp32.bits_of(reference.mac(fp32.from_bits(p), *terms))
    total = int32.from_bits(p)
    for shift in (0, 8):
        lanes = (int8.from_bits(bits >> shift & 0xFF) for bits in (a, w))
        total = reference.mac(total, *lanes)
    return int32.bits_of(total)


def expected_sums(stimulus: Stimulus, mode: int, latency: int) -> Array:
    """What ``o_p`` carries in each cycle, from cycle ``latency + 3`` on.

    The weight must have been loaded and swapped in by the first two cycles.
    """
    count = len(stimulus.a)
    shadow = np.zeros(count, np.int64)
    weight = np.zeros(count, np.int64)
    for cycle in range(1, count):
        last = cycle - 1
        shadow[cycle] = stimulus.w[last] if stimulus.load[last] else shadow[last]
        weight[cycle] = shadow[last] if stimulus.swap[last] else weight[last]
    # An activation that enters in cycle t meets its weight in t + 1 and its sum in t + 2.
    end = count - latency
    return sums(stimulus.a[1 : end - 2], weight[2 : end - 1], stimulus.p[3:end], mode)


def random_stimulus(a: Array, w: Array, p: Array, rng: np.random.Generator) -> Stimulus:
    """These operands, with loads and swaps at random cycles, often together."""
    swap, load = rng.integers(0, 2, (2, len(a)))
    swap[:2], load[:2] = 1, 1
    return Stimulus(a, w, p, swap, load)


def _emit(component: Any, name: str) -> str:
    return convert(component, name=name)


def _instance(index: int, module: str, kind: str, swap: str) -> str:
    operand = {"bf16": "recoded", "int8": "raw", "both": "chosen"}[kind]
    mode = ", .mode(mode)" if kind == "both" else ""
    return (
        f"  {module} cell_{index} (.clk(clk), .rst(1'b0), .i_a({operand}_a), .i_w({operand}_w), "
        f".i_swap({swap}), .i_w_load(i_w_load), .i_p(i_p), .o_p(o_{index}){mode}, "
        ".o_a(), .o_swap());\n"
    )


def design() -> tuple[str, list[str]]:
    """Verilog of the bench and the names of its outputs in order."""
    modules, instances, names = [_emit(Edge(), "edge_pieces")], [], []
    for name, (kind, latency) in CELLS.items():
        modules.append(_emit(Cell(formats=FORMATS[kind], latency=latency), f"cell_{name}"))
        instances.append(_instance(len(names), f"cell_{name}", kind, "i_swap"))
        names.append(name)
    sound = _emit(Cell(formats=FORMATS["bf16"], latency=2), "cell_fault")
    for name, (pattern, replacement) in FAULTS.items():
        text, count = re.subn(pattern, replacement, sound)
        if count != 1:
            raise ValueError(f"Fault {name} must fit one statement, not {count}")
        modules.append(text.replace("cell_fault", f"cell_{name}"))
        instances.append(_instance(len(names), f"cell_{name}", "bf16", "i_swap"))
        names.append(name)
    instances.append(_instance(len(names), "cell_bf16_2", "bf16", "i_next_swap"))
    names.append(EARLY_SWAP)
    outputs = "".join(f", output [31:0] o_{i}" for i in range(len(names) + len(EDGES)))
    first = len(names)
    top = f"""
/* verilator lint_off PINCONNECTEMPTY */
module top (input clk, input mode, input [15:0] i_a, input [15:0] i_w, input [31:0] i_p,
            input i_swap, input i_next_swap, input i_w_load{outputs});
  wire [16:0] recoded_a, recoded_w, chosen_a, chosen_w;
  wire [15:0] raw_a = i_a, raw_w = i_w, cast;
  edge_pieces edge_a (.bits(i_a), .recoded(recoded_a), .sum_(i_p), .cast(cast));
  edge_pieces edge_w (.bits(i_w), .recoded(recoded_w), .sum_(32'h0), .cast());
  assign chosen_a = mode ? {{1'b0, i_a}} : recoded_a;
  assign chosen_w = mode ? {{1'b0, i_w}} : recoded_w;
  assign o_{first} = {{15'h0, recoded_a}};
  assign o_{first + 1} = {{16'h0, cast}};
{"".join(instances)}endmodule
"""
    return "\n".join([*modules, top]), [*names, *EDGES]


class Bench:
    """Native model of :func:`design`."""

    def __init__(self) -> None:
        text, self.names = design()
        lines = [
            f"outputs[cycle * {len(self.names)} + {index}] = top.o_{index};"
            for index in range(len(self.names))
        ]
        harness = Path(__file__).with_name("cells.cpp").read_text()
        path, self.cache_hit = build_library(
            text, "top", harness.replace("TAKE_OUTPUTS", " ".join(lines))
        )
        self._library = ctypes.CDLL(str(path))

    def _call(self, name: str, count: int, *arguments: Any) -> None:
        pointers = [
            ctypes.c_void_p(item.ctypes.data) if isinstance(item, np.ndarray) else item
            for item in arguments
        ]
        getattr(self._library, name)(ctypes.c_int64(count), *pointers)

    def run(self, stimulus: Stimulus, mode: int) -> dict[str, Array]:
        """Outputs by name, an element a cycle: what the wires hold in that cycle."""
        types = (np.uint16, np.uint16, np.uint32, np.uint8, np.uint8)
        arrays = [
            np.ascontiguousarray(column, type_)
            for column, type_ in zip(stimulus, types, strict=True)
        ]
        count = len(arrays[0])
        outputs = np.zeros((count, len(self.names)), np.uint32)
        self._call("bench_run", count, mode, *arrays, outputs)
        return dict(zip(self.names, outputs.T, strict=True))

    def multiply_accumulate(self, a: Array, w: Array, p: Array, mode: int) -> dict[str, Array]:
        """Sums by sound or faulty cell, one for each triple; the weight changes every cycle."""
        count, slack = len(a), 8
        stimulus = Stimulus(
            a=np.concatenate([[0], a, np.zeros(slack - 1, a.dtype)]),
            w=np.concatenate([w, np.zeros(slack, w.dtype)]),
            p=np.concatenate([[0, 0, 0], p, np.zeros(slack - 3, p.dtype)]),
            swap=np.ones(count + slack),
            load=np.ones(count + slack),
        )
        outputs = self.run(stimulus, mode)
        return {
            name: values[3 + CELLS.get(name, ("", 2))[1] :][:count]
            for name, values in outputs.items()
            if name not in EDGES
        }

    def fused(self, p: Array, a: Array, w: Array) -> Array:
        """The C library's answers to bf16 triples, as bits; operands that are a fill are +0."""
        a, w = (np.where(bits == 0x7FFF, np.uint16(0), bits) for bits in (a, w))
        out = np.zeros(len(p), np.uint32)
        self._call("fused", len(p), p, a, w, out)
        return out
