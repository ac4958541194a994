"""A scores unit wired to a values unit, and streams of attention for them."""

import dataclasses

import numpy as np
from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hw.arch.lanes.key_mask import KeyMask
from hw.arch.lanes.softmax_program import SoftmaxProgram, SoftmaxRole
from hw.arch.pcu import PcuProgram
from hw.arch.words.pcu_word import pcu_layout
from hw.emit.shared import shared
from hw.lib.component import Component
from hw.lib.stream import vector_signature
from hw.numeric import reference
from hw.numeric.formats import bf16
from hw.numeric.fused_softmax import ScoresModel, normalized, packet_words, score_scale
from hw.pcu.unit import Pcu

__all__ = [
    "Attention",
    "AttentionPair",
    "random_attention",
    "run_attention",
    "simulate_attention",
]

_UNITS = ("scores", "values")


class AttentionPair(Component):
    """A scores unit whose results are the weights of a values unit, and when each is busy.

    ``NAME_skipped`` rows of a unit's tiles are left out: ``NAME_begin`` and ``NAME_end`` are the
    cycles in which the first of the others, and the last so far, entered its grid, and
    ``NAME_rows`` is how many did. ``between`` passes from unit to unit if ``moved``.
    """

    def __init__(self, *, width_bits, config):
        self._width_bits, self._config = width_bits, config
        link = vector_signature(width_bits)
        streams = ("keys", "queries", "values")
        super().__init__(
            {f"i_{name}": In(link) for name in streams}
            | {"o_result": Out(link), "moved": Out(1), "between": Out(width_bits + 2)}
            | {f"{name}_config": In(pcu_layout(config.lanes).size) for name in _UNITS}
            | {f"{name}_skipped": In(32) for name in _UNITS}
            | {f"{name}_{what}": Out(32) for name in _UNITS for what in ("begin", "end", "rows")}
        )

    def elaborate(self, platform):
        m = Module()
        units = {name: Pcu(width_bits=self._width_bits, config=self._config) for name in _UNITS}
        scores, values = units["scores"], units["values"]
        cycle = Signal(32)
        m.d.sync += cycle.eq(cycle + 1)
        for name, unit in units.items():
            m.submodules[name] = shared(unit)
            m.d.comb += [unit.config.eq(getattr(self, f"{name}_config")), unit.i_run.eq(1)]
            begin, end, rows = (
                getattr(self, f"{name}_{each}") for each in ("begin", "end", "rows")
            )
            skipped = Signal(32, name=f"{name}_count")
            counts = skipped == getattr(self, f"{name}_skipped")
            with m.If(unit.o_issue):
                m.d.sync += skipped.eq(Mux(counts, skipped, skipped + 1))
                with m.If(counts):
                    m.d.sync += [end.eq(cycle), rows.eq(rows + 1)]
                    with m.If(rows == 0):
                        m.d.sync += begin.eq(cycle)
        wiring.connect(m, wiring.flipped(self.i_keys), scores.i_activation)
        wiring.connect(m, wiring.flipped(self.i_queries), scores.i_weight)
        wiring.connect(m, scores.o_result, values.i_weight)
        m.d.comb += [
            self.moved.eq(scores.o_result.valid & scores.o_result.ready),
            self.between.eq(scores.o_result.payload),
        ]
        wiring.connect(m, wiring.flipped(self.i_values), values.i_activation)
        wiring.connect(m, values.o_result, wiring.flipped(self.o_result))
        return m


def _payloads(words, last, final):
    marks = np.asarray(last, np.uint32) | np.asarray(final, np.uint32) << 1
    return np.concatenate([words, marks[:, np.newaxis]], axis=1)


def _bits(values):
    """Words of rows of bf16."""
    return np.ascontiguousarray(bf16.bits_of(values).astype(np.uint16)).view(np.uint32)


@dataclasses.dataclass
class Attention:
    """Query groups that meet blocks of keys: operands, mask, and sizes of the blocks.

    Members
    -------
    chip : ChipConfig
    queries : array of bf16, groups × C × d
    keys : array of bf16, groups × keys × d
    values : array of bf16, groups × keys × dv
    blocks : list of lists of int
        Keys of each block, by query group: multiples of R; together those of the group.
    mask : KeyMask
    """

    chip: object
    queries: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    blocks: list
    mask: KeyMask = dataclasses.field(default_factory=KeyMask)

    @property
    def factor(self):
        return score_scale(self.queries.shape[2] ** -0.5)

    @property
    def programs(self):
        part = SoftmaxProgram(SoftmaxRole.SCORES, float(self.factor), self.mask)
        values = SoftmaxProgram(SoftmaxRole.VALUES)
        return {
            "scores": PcuProgram(softmax=part),
            "values": PcuProgram(softmax=values, weights_by_row=True),
        }

    def streams(self):
        """Payloads of keys, queries and values."""
        r, c = self.chip.grid_rows, self.chip.grid_columns
        depth = self.queries.shape[2] // r
        keys, queries, values = [], [], []
        for group, sizes in enumerate(self.blocks):
            tiles = self.queries[group].reshape(c, depth, r).transpose(1, 0, 2)
            ones = np.ones((1, sum(sizes)), bf16.dtype)
            columns = np.concatenate([self.values[group, : sum(sizes)].T, ones])
            first = 0
            for number, size in enumerate(sizes):
                ends = number == len(sizes) - 1
                block = self.keys[group, first : first + size]
                rows = _bits(block).reshape(size, depth, -1).transpose(1, 0, 2)
                keys.append(self._tiles(rows, True))
                queries.append(self._tiles(_bits(tiles.reshape(-1, r)).reshape(depth, c, -1), ends))
                part = columns[:, first : first + size].reshape(len(columns), size // r, r)
                part = _bits(part.transpose(1, 0, 2).reshape(-1, r))
                values.append(self._tiles(part.reshape(size // r, len(columns), -1), ends))
                first += size
        return {
            "i_keys": np.concatenate(keys),
            "i_queries": np.concatenate(queries),
            "i_values": np.concatenate(values),
        }

    @staticmethod
    def _tiles(words, ends):
        """Payloads of tiles, each a packet, the last of which may have the mark `final`."""
        tiles, rows, _ = words.shape
        last = np.tile(np.arange(rows) == rows - 1, tiles)
        final = np.arange(tiles * rows) == (tiles * rows - 1 if ends else -1)
        return _payloads(words.reshape(tiles * rows, -1), last, final)

    def golden(self):
        """Blocks of the scores unit, and rows of the output, by query group."""
        model = ScoresModel(
            self.factor,
            self.mask,
            columns=self.chip.grid_columns,
            function_bits=self.chip.pcu.function_bits,
        )
        blocks, outputs = [], []
        for group, sizes in enumerate(self.blocks):
            own, first = [], 0
            for number, size in enumerate(sizes):
                keys = self.keys[group, first : first + size]
                scores = reference.matmul(keys, self.queries[group].T)
                own.append(model.block(scores, begins=number == 0))
                first += size
            values = self.values[group, :first]
            outputs.append(normalized(values, own, self.chip.pcu.function_bits))
            blocks.append(own)
        return blocks, outputs

    def packets(self):
        """Payloads of the scores unit's results."""
        found = []
        for own in self.golden()[0]:
            for block in own:
                words = packet_words(block)
                end = np.arange(len(words)) == len(words) - 1
                found.append(_payloads(words, end, end))
        return np.concatenate(found)

    def results(self):
        """Payloads of the values unit's results."""
        found = []
        for rows in self.golden()[1]:
            words = _bits(np.pad(rows, ((0, len(rows) % 2), (0, 0)))).reshape(
                -(-len(rows) // 2), -1
            )
            end = np.arange(len(words)) == len(words) - 1
            found.append(_payloads(words, end, end))
        return np.concatenate(found)


def random_attention(rng, chip, blocks, *, d, dv, mask=None, scale=1.0):
    """Attention of unit normal operands, the queries times ``scale``."""

    def normal(*shape, scale=1.0):
        return reference.cast((scale * rng.normal(0, 1, shape)).astype(np.float32), bf16)

    groups, keys = len(blocks), max(sum(each) for each in blocks)
    return Attention(
        chip,
        normal(groups, chip.grid_columns, d, scale=scale),
        normal(groups, keys, d),
        normal(groups, keys, dv),
        blocks,
        mask or KeyMask(),
    )


def run_attention(model, case, *, stall=0.0, seed=0):
    """Run a pair natively, compare its results by bits, and return its transfers."""
    expected = case.results()
    streams = case.streams()
    model.reset(seed)
    for name, program in case.programs.items():
        model.set(f"{name}_config", program.pack(case.chip.pcu.lanes))
    for name, group in zip(_UNITS, _skipped(case), strict=True):
        model.set(f"{name}_skipped", group)
    stalls = dict.fromkeys([*streams, "o_result"], stall)
    crossed = model.run(streams, {"o_result": len(expected)}, stalls=stalls, quiet_cycles=20_000)
    assert (crossed["o_result"].words == expected).all()
    return crossed


def _number(words):
    return int.from_bytes(np.ascontiguousarray(words, np.uint32).tobytes(), "little")


def simulate_attention(case, rng, *, stall=0.0):
    """Run a pair in the simulator of Amaranth, and compare its results by bits."""
    pair = AttentionPair(width_bits=case.chip.width_bits, config=case.chip.pcu)
    expected = [(_number(row[:-1]), int(row[-1])) for row in case.results()]
    streams, got, between = case.streams(), [], []
    # Each stall lasts a cycle; no vector waits for more than a block.
    most = 20_000

    def source(name):
        port = getattr(pair, name)

        async def feed(ctx):
            for row in streams[name]:
                while rng.random() < stall:
                    await ctx.tick()
                ctx.set(port.payload.data, _number(row[:-1]))
                ctx.set(port.payload.last, int(row[-1]) & 1)
                ctx.set(port.payload.final, int(row[-1]) >> 1)
                ctx.set(port.valid, 1)
                await ctx.tick().until(port.ready)
                ctx.set(port.valid, 0)

        return feed

    async def take(ctx):
        for name, program in case.programs.items():
            ctx.set(getattr(pair, f"{name}_config"), program.pack(case.chip.pcu.lanes))
        port = pair.o_result
        for _ in range(most):
            ctx.set(port.ready, int(rng.random() >= stall))
            sampled = await ctx.tick().sample(
                port.valid & port.ready, port.payload.data, port.payload.last, port.payload.final
            )
            _, _, moved, bits, last, final = sampled
            if moved:
                got.append((bits, last | final << 1))
            if len(got) == len(expected):
                return

    async def watch(ctx):
        while True:
            _, _, moved, bits = await ctx.tick().sample(pair.moved, pair.between)
            if moved:
                between.append(bits)

    simulator = Simulator(pair)
    simulator.add_clock(1e-6)
    for name in streams:
        simulator.add_testbench(source(name), background=True)
    simulator.add_testbench(watch, background=True)
    simulator.add_testbench(take)
    simulator.run()
    marks = case.chip.width_bits
    packets = [_number(row[:-1]) | int(row[-1]) << marks for row in case.packets()]
    assert between == packets
    assert got == expected


def _skipped(case):
    """Rows of tiles of the first block in each unit."""
    r = case.chip.grid_rows
    size = case.blocks[0][0]
    return size * (case.queries.shape[2] // r), size // r * (case.values.shape[2] + 1)
