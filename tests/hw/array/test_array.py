# amaranth: UnusedElaboratable=no
"""Arrays on their own: lanes that the neighbour skews, both layouts, and bits of numpy."""

import itertools
import re

import numpy as np
import pytest
from amaranth.hdl import Value
from amaranth.sim import Simulator

import tilewright
from hw.arch.errors import BadInputError
from hw.array.dataflow import LANE_BITS, ArrayConfig, Dataflow
from hw.array.output_stationary import OutputArray
from hw.array.stationary import StationaryArray
from hw.emit.structure import Structure
from hw.numeric import reference
from hw.numeric.formats import bf16, e4m3, e5m2, int8
from sim.oracle import product
from tests.hw.matrix.units import operand
from tests.slow_cases import quick_first

#: Formats of the cells, of the first operand and of the second.
FORMATS = {
    "bf16": ((bf16,), bf16, bf16),
    "int8": ((bf16, int8), int8, int8),
    "fp8": ((e4m3, e5m2), e4m3, e5m2),
}


class Schedule:
    """What is on each port of an array in which cycle; a port with nothing to do has zeros."""

    def __init__(self, array):
        self._array = array
        self._ports = {}
        self._reads = {}
        self.cycles = 0

    def put(self, cycle, port, value, low):
        """Put a value on bits of a port, from bit ``low`` on."""
        key = (cycle, port)
        self._ports[key] = self._ports.get(key, 0) | int(value) << low
        self.cycles = max(self.cycles, cycle + 1)

    def read(self, cycle, column, place):
        """Take the sum that a column has in a cycle to a place of the result."""
        self._reads.setdefault(cycle, []).append((column, place))
        self.cycles = max(self.cycles, cycle + 1)

    def run(self, output, modes, shape, dtype):
        """Result of the array."""
        array = self._array
        result = np.zeros(shape, np.uint32)
        ports = {port: Value.cast(getattr(array, port)) for _, port in self._ports}
        sums = Value.cast(getattr(array, output))

        async def testbench(ctx):
            for port, value in modes.items():
                ctx.set(getattr(array, port), value)
            for cycle in range(self.cycles):
                for port in ports:
                    ctx.set(ports[port], self._ports.get((cycle, port), 0))
                leaving = ctx.get(sums)
                for column, place in self._reads.get(cycle, ()):
                    result[place] = leaving >> 32 * column & 0xFFFF_FFFF
                await ctx.tick()

        simulator = Simulator(array)
        simulator.add_clock(1e-6)
        simulator.add_testbench(testbench)
        simulator.run()
        return result.view(dtype)


def lanes(matrix, elements):
    """Lines × lanes of 16 bits of a matrix whose second axis is the inner extent."""
    return np.ascontiguousarray(matrix).view(np.uint8).view(np.uint16).reshape(len(matrix), -1)


def products(rng, count, rows, inner, columns, fmt):
    """Products with old sums below them: ((a, w, old), ...)."""
    _, a, w = fmt
    for _ in range(count):
        old = rng.integers(-1000, 1000, (rows, columns)).astype(a.accumulator.dtype)
        yield operand(rng, (rows, inner), a), operand(rng, (inner, columns), w), old


def stationary_outcome(config, fmt, *, seed, skewed=False, by_column=False, by_row=False):
    """Whether the sums of successive tiles on an array that keeps weights are numpy's."""
    rng = np.random.default_rng(seed)
    rows, columns, latency = config.rows, config.columns, config.latency
    elements = LANE_BITS // fmt[1].bits
    array = StationaryArray(config, skewed=skewed, by_column=by_column)
    schedule = Schedule(array)
    # Row r of a vector comes r·L cycles after row 0, and so does its swap mark.
    lag = [0 if skewed else row * latency for row in range(rows)]
    height = rows * latency + columns
    tiles = list(products(rng, 3, height, rows * elements, columns, fmt))
    swapped = 0
    for index, (a, w, old) in enumerate(tiles):
        staying = lanes(w.T, elements)
        if not by_column:
            vectors = list(staying.T)
        elif by_row:
            vectors = list(staying.T.reshape(columns, -1))
        else:
            vectors = list(staying)
        for number, vector in enumerate(vectors):
            # The first cycle in which the last swap has passed all cells that the vector is for.
            if not by_column:
                at = swapped + number * latency + columns - 1
            elif by_row:
                last = (number + 1) * (rows // columns) - 1
                at = swapped + last * latency + columns - 1
            else:
                at = swapped + (rows - 1) * latency + number
            schedule.put(at, "i_load", 1, number)
            for lane, bits in enumerate(vector):
                schedule.put(at, "i_stationary", bits, LANE_BITS * lane)
        swapped += height
        moving = lanes(a, elements)
        for line in range(height):
            cycle = swapped + line
            for row in range(rows):
                schedule.put(cycle + lag[row], "i_moving", moving[line, row], LANE_BITS * row)
                if line == 0 and (row == 0 or not skewed):
                    schedule.put(cycle + lag[row], "i_swap", 1, row)
            for column in range(columns):
                below = old.view(np.uint32)[line, column]
                schedule.put(cycle + 2 + column, "i_p", below, 32 * column)
                leaves = cycle + config.latency_cycles + column
                schedule.read(leaves, column, (index * height + line, column))
    ordered = config.cell.ordered
    modes = {"moving_mode": ordered.index(fmt[1]), "stationary_mode": ordered.index(fmt[2])}
    if by_column:
        modes["i_by_row"] = int(by_row)
    golden = np.concatenate([reference.matmul(*tile) for tile in tiles])
    result = schedule.run("o_p", modes, golden.shape, golden.dtype)
    return result.tobytes() == golden.tobytes()


def output_outcome(config, fmt, *, seed, skewed=False):
    """Whether the sums of successive tiles on an output-stationary array are numpy's."""
    rng = np.random.default_rng(seed)
    rows, columns, latency = config.rows, config.columns, config.latency
    elements = LANE_BITS // fmt[1].bits
    height = rows * latency
    # The shortest tiles that follow one another: sums come as the last of the former leave.
    steps = rows
    tiles = list(products(rng, 2, height, steps * elements, columns, fmt))
    array = OutputArray(config, skewed=skewed)
    schedule = Schedule(array)
    for index, (a, w, _) in enumerate(tiles):
        passing, coming = lanes(a, elements), lanes(w.T, elements)
        start = index * steps * latency
        for step, turn in itertools.product(range(steps), range(latency)):
            cycle = start + step * latency + turn
            for lane in range(rows):
                # The last lane belongs to the upmost row, where weights come first.
                lag = 0 if skewed else rows - 1 - lane
                bits = passing[lane * latency + turn, step]
                schedule.put(cycle + lag, "i_a", bits, LANE_BITS * lane)
            for row in range(1 if skewed else rows):
                schedule.put(cycle + row, "i_first", step == 0, row)
                finish = step == steps - 1 and turn == latency - 1
                schedule.put(cycle + row, "i_finish", finish, row)
            for column in range(columns):
                lag = 0 if skewed else column
                schedule.put(cycle + lag, "i_b", coming[column, step], LANE_BITS * column)
        there = start + steps * latency + 2 + latency + rows - 1
        for line in range(height):
            # A row of cells keeps still once its sums and those from above have left.
            for row in range(line // latency, rows):
                schedule.put(there + line, "i_shift", 1, row)
            for column in range(columns):
                place = index * height + line, column
                schedule.read(there + line + column, column, place)
    ordered = config.cell.ordered
    modes = {"a_mode": ordered.index(fmt[1]), "b_mode": ordered.index(fmt[2])}
    golden = np.concatenate([product(a, w) for a, w, _ in tiles])
    result = schedule.run("o_sums", modes, golden.shape, golden.dtype)
    return result.tobytes() == golden.tobytes()


def config(rows, columns, dataflow, fmt, latency):
    return ArrayConfig(rows, columns, dataflow, fmt[0], latency)


@pytest.mark.few(3)
@pytest.mark.parametrize("skewed", [False, True], ids=["raw", "skewed"])
@pytest.mark.parametrize(
    ("rows", "columns", "latency", "fmt"), [(3, 2, 2, "bf16"), (2, 3, 1, "int8"), (2, 1, 3, "fp8")]
)
def test_tiles_follow_one_another_on_a_stationary_array(rows, columns, latency, fmt, skewed, seed):
    fmt = FORMATS[fmt]
    array = config(rows, columns, Dataflow.WS, fmt, latency)
    assert stationary_outcome(array, fmt, seed=seed, skewed=skewed)


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize(("rows", "columns"), quick_first([(3, 1), (4, 2), (3, 3)]))
def test_a_raw_array_loads_columns_or_rows(rows, columns, by_row, seed):
    fmt = FORMATS["int8"]
    array = config(rows, columns, Dataflow.WS, fmt, 1)
    assert stationary_outcome(array, fmt, seed=seed, by_column=True, by_row=by_row)


@pytest.mark.few(3)
@pytest.mark.parametrize("skewed", [False, True], ids=["raw", "skewed"])
@pytest.mark.parametrize(
    ("rows", "columns", "latency", "fmt"), [(2, 3, 2, "bf16"), (3, 2, 1, "int8"), (1, 2, 3, "fp8")]
)
def test_sums_stay_in_an_output_array(rows, columns, latency, fmt, skewed, seed):
    fmt = FORMATS[fmt]
    array = config(rows, columns, Dataflow.OS, fmt, latency)
    assert output_outcome(array, fmt, seed=seed, skewed=skewed)


#: Ports of the lower of two rows, and their widths.
FAULTS = (
    (Dataflow.WS, "i_swap", 1),
    (Dataflow.WS, "i_moving", LANE_BITS),
    (Dataflow.WS, "i_load", 1),
    (Dataflow.OS, "i_first", 1),
    (Dataflow.OS, "i_finish", 1),
    (Dataflow.OS, "i_a", LANE_BITS),
)


@pytest.mark.parametrize(("dataflow", "port", "width"), quick_first(FAULTS, 2))
def test_a_row_that_takes_the_bits_of_another_is_found(dataflow, port, width, seed, monkeypatch):
    sound = Structure.instance

    def wrong(structure, name, component, **ports):
        if name == "row_1":
            bits = structure.port(port)
            ports[port] = bits[-width:] if port == "i_a" else bits[:width]
        sound(structure, name, component, **ports)

    fmt = FORMATS["int8"]
    outcome = output_outcome if dataflow == Dataflow.OS else stationary_outcome
    array = config(2, 3, dataflow, fmt, 1)
    assert outcome(array, fmt, seed=seed)
    monkeypatch.setattr(Structure, "instance", wrong)
    assert not outcome(array, fmt, seed=seed)


@pytest.mark.parametrize(("dataflow", "kind"), [("ws", "stationary"), ("os", "output")])
def test_the_command_emits_arrays_whose_edges_are_their_neighbours(dataflow, kind, tmp_path):
    words = "verilog --component array --rows 3 --cols 2 --format int8 --latency 2".split()
    tops = {}
    for option, suffix in (([], "1"), (["--raw-edges"], "0")):
        path = tmp_path / f"array{suffix}.v"
        assert tilewright.main([*words, "--dataflow", dataflow, *option, "-o", str(path)]) == 0
        top = rf"^module {kind}_array_r3_c2_{dataflow}_int8_l2_s{suffix}\w*\(.*?^endmodule"
        (tops[suffix],) = re.findall(top, path.read_text(), re.MULTILINE | re.DOTALL)
    assert "always @(posedge clk)" in tops["1"]
    assert "always" not in tops["0"]


def test_an_array_that_cannot_load_by_column_is_refused():
    fmt = FORMATS["bf16"]
    with pytest.raises(BadInputError, match="must be a multiple of its columns, not 3 for 2"):
        StationaryArray(config(3, 2, Dataflow.WS, fmt, 1), by_column=True)


def test_names_tell_arrays_apart():
    array = config(4, 2, Dataflow.WS, FORMATS["int8"], 1)
    options = [
        {"skewed": skewed, "by_column": by_column}
        for skewed in (False, True)
        for by_column in (False, True)
    ]
    assert len({StationaryArray(array, **option).definition_name for option in options}) == 4
    outputs = {OutputArray(array, skewed=skewed).definition_name for skewed in (False, True)}
    assert len(outputs) == 2
