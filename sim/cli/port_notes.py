"""Notes on the ports of matrix units, arrays and tensor units for headers of Verilog."""

from __future__ import annotations

from hw.arch.words.pcu_word import format_modes, rounded_formats
from hw.array.dataflow import LANE_BITS, ArrayConfig, Dataflow
from hw.matrix.requantizer import SCALE_BITS
from hw.matrix.unit_config import UnitConfig
from hw.numeric.formats import Format
from hw.numeric.product_formats import DEFAULT_CELLS

__all__ = ["array_notes", "matrix_notes", "tensor_notes", "unit_notes"]


def _lanes(letter: str, config: ArrayConfig) -> str:
    """Layout of operands in the lanes of a vector."""
    kinds = []
    for fmt in config.cell.ordered:
        count = LANE_BITS // fmt.bits
        many = "" if count == 1 else f"{count} "
        first = "" if count == 1 else ", the lowest k in the lowest bits"
        kinds.append(f"{many}{fmt.name}{first}")
    high = (config.rows if letter == "r" else config.columns) - 1
    scale = f", their scale from bit {LANE_BITS} on" if config.cell.has_scale else ""
    said = " or ".join(kinds)
    return f"lane {letter} = 0..{high} at bit {config.lane_bits}*{letter}: {said}{scale}"


def _mode(config: ArrayConfig, operands: str) -> str:
    formats = config.cell.ordered
    if len(formats) == 1:
        return "static; without effect on cells of one format"
    first, second = (fmt.name for fmt in formats)
    return f"static: format of {operands}, 0 {first}, 1 {second}"


_COUNTERS = "cycles since reset; each cycle counts in exactly one of them"


def _results(config: UnitConfig) -> dict[str, str]:
    sums = " or ".join(dict.fromkeys(fmt.accumulator.name for fmt in config.array.formats))
    out = sums if config.out is None else config.out.name
    bits = config.out_bits
    factor = "fp32" if config.affine else f"an unsigned integer of {SCALE_BITS} bits"
    return {
        "o_result.data": f"result c = 0..{config.array.columns - 1} at bit {bits}*c: {out}",
        "o_result.last": "ends a packet, the results of a tile",
        "relu": "static: results below zero leave as 0",
        "scale": f"static: factor of the sums, {factor}",
        "shift": "static: scaled sums are divided by 2^shift, rounded to nearest even, saturated",
        "i_bias": f"{sums}, added to sums of column i; one vector per packet",
        "counters": _COUNTERS,
        "counters.active": "a vector entered the array",
        "counters.weight_stall": "a vector waited for a stationary tile that had not arrived",
        "counters.weight_shift": "a vector waited for a stationary tile that was being shifted in",
        "counters.non_matrix": "anything else",
    }


def unit_notes(config: UnitConfig) -> dict[str, str]:
    """Notes on the ports of a matrix unit, as `gen.header.About` takes them."""
    array = config.array
    notes = _results(config) | {
        "activation_mode": _mode(array, "activations"),
        "weight_mode": _mode(array, "weights"),
    }
    if array.dataflow == Dataflow.OS:
        steps = "" if array.latency == 1 else f"; {array.latency} vectors per step"
        return notes | {
            "i_activation.data": _lanes("r", array) + steps,
            "i_activation.finish": "last step of a tile: its sums leave",
            "i_weight": f"{_lanes('c', array)}; one vector per step",
        }
    moving, staying = "i_activation", "i_weight"
    if array.dataflow == Dataflow.IS:
        moving, staying = staying, moving
    return notes | {
        f"{moving}.data": _lanes("r", array),
        f"{moving}.last": "ends a tile; the next vector meets the next stationary tile",
        f"{moving}.accumulate": "add to the sums of the previous tile, row by row",
        f"{moving}.finish": "the sums leave as results; else they wait for the next tile",
        staying: f"{_lanes('c', array)}; a tile is {array.rows} vectors, row 0 first",
    }


def tensor_notes(config: UnitConfig) -> dict[str, str]:
    """Notes on the ports of a tensor unit."""
    array = config.array
    return _results(config) | {
        "i_weight": f"{_lanes('c', array)}; {array.rows} vectors per multiply, row 0 first",
        "i_bias": "added to sums of column i; one vector per multiply that finishes",
        "i_instruction": "see docs/tensor_unit.md",
        "i_host": f"vector for the buffer, {_lanes('r', array)}",
        "o_host.data": f"vector of the buffer, {_lanes('r', array)}",
        "o_host.last": "ends its instruction",
        "status.fault": "why the next instruction was refused; 0 if it was not",
        "status.begun": "instructions begun since reset",
        "busy": "a command is in progress, or a vector of the buffer has not left",
    }


def matrix_notes(
    rows: int, columns: int, formats: tuple[Format, ...] = DEFAULT_CELLS
) -> dict[str, str]:
    """Notes on the ports of the matrix unit of a PCU with cells of these formats."""
    forms = " or ".join(
        f"2 {fmt}, the lower k first" if fmt.products_per_cycle == 2 else fmt.name
        for fmt in formats
    )
    lanes = f"lane r = 0..{rows - 1} at bit {LANE_BITS}*r: {forms}"
    first, second = formats[0], formats[-1]
    modes = {
        "int8": f"static: operands are int8, else {first}",
        f"activation_{second}": f"static: activations are {second}, else {first}",
        f"weight_{second}": f"static: weights are {second}, else {first}",
        **{
            f"to_{fmt}": f"static: sums are rounded to {fmt}, two rows per vector"
            for fmt in rounded_formats(formats)
        },
    }
    marks = {"last": "ends a packet, a tile", "final": "ends the last tile: its sums leave"}
    return {
        "i_activation.data": lanes,
        **{f"i_activation.{mark}": note for mark, note in marks.items()},
        "i_weight.data": f"{lanes}; a tile is {columns} vectors, as weights_by_row says",
        "i_continues": "with i_weight: the tile uses the rows after those of the tile before",
        "o_result.data": f"{columns} sums of 32 bits, or {rows} of 16, two rows; the first lowest",
        **{mode: modes[mode] for mode in format_modes(formats)},
    }


def array_notes(config: ArrayConfig, *, skewed: bool) -> dict[str, str]:
    """Notes on the ports of an array, with or without its skew registers."""
    if config.dataflow == Dataflow.OS:
        row = f"lane r comes {config.rows - 1} - r cycles after the highest"
        column, marks = "lane c comes c cycles after lane 0", ", bit 0 with the highest lane"
        if skewed:
            row = column = "all at once"
            marks = ""
        return {
            "i_a": f"activations, {_lanes('r', config)}; {row}",
            "i_b": f"weights, {_lanes('c', config)}; {column}",
            "i_first": f"first step of a sum{marks}",
            "i_finish": f"last step of a sum{marks}",
            "i_shift": "rows of cells whose drains move on, bit 0 the highest; column c later",
            "o_sums": "sum that leaves column i",
            "a_mode": _mode(config, "activations"),
            "b_mode": _mode(config, "weights"),
        }
    row, marks = f"lane r comes {config.latency}*r cycles after lane 0", ", bit r with lane r"
    if skewed:
        row, marks = "all at once", ""
    return {
        "i_moving": f"streaming operands, which pass right, {_lanes('r', config)}; {row}",
        "i_swap": f"use the loaded tile from this vector on{marks}",
        "i_stationary": f"stationary operands, {_lanes('c', config)}",
        "i_load": "rows of cells that load i_stationary now, bit 0 the highest",
        "i_p": "sum that enters column i from above",
        "o_p": "sum that leaves column i",
        "moving_mode": _mode(config, "streaming operands"),
        "stationary_mode": _mode(config, "stationary operands"),
    }
