"""What a netlist computes: its units as actors on unbounded streams, without time or switches."""

import functools
from collections import defaultdict, deque

import numpy as np

from hw.arch.agcu import AgcuProgram
from hw.arch.limits import MAX_MODULUS
from hw.arch.pcu import PcuProgram
from hw.arch.pmu import PmuProgram
from hw.arch.words.pmu_word import lane_count, piece_positions, rows_log2
from hw.numeric.formats import bf16
from hw.numeric.reference import cast, matmul
from tests.hw.step_model import commands_of, moves_of

__all__ = ["run_netlist"]


class Stall(AssertionError):
    """A run that stops before every actor is done."""


def run_netlist(netlist, config, memory):
    """Run to the end; ``memory`` holds a list of bytearrays, one an argument, changed in place.

    Streams hold any number of vectors, slots and credits only what the programs say.
    """
    _Run(netlist, config, memory).run()


def _filtered(queue, modulus, index):
    """Packets of a stream that a port takes; a vector with whether it begins a group of tiles."""
    assert 1 <= modulus <= MAX_MODULUS
    number, begins = 0, True
    while True:
        while not queue:
            yield None
        vector = queue.popleft()
        mine = number % modulus == index
        if mine:
            yield *vector, begins
        number += vector[1]
        if vector[1]:
            begins = vector[2] or (begins and not mine)


@functools.lru_cache(maxsize=4096)
def _bytes_of(position, lanes, rows, size):
    """Addresses in a PMU of the bytes of the piece that starts at a position."""
    positions = np.array(piece_positions(position, lanes=lanes, rows_log2=rows))
    return (positions[:, None] * size + np.arange(size)).reshape(-1)


class _Run:
    def __init__(self, netlist, config, memory):
        self.netlist, self.config, self.memory = netlist, config, memory
        self.bytes = config.width_bits // 8
        self.inputs = defaultdict(deque)  # (unit, port) of sinks
        self.outputs = defaultdict(deque)  # (unit, port) of sources
        self.tokens_in = defaultdict(int)
        self.tokens_out = defaultdict(int)

    def run(self):
        actors = {}
        for net in self.netlist.nets:
            actors[net.name] = self.net(net)
        for name, program in self.netlist.units.items():
            match program:
                case AgcuProgram():
                    for kind, streams in (("load", program.loads), ("store", program.stores)):
                        for number, issuer in enumerate(streams):
                            if issuer is not None:
                                actor = getattr(self, kind)(name, program, number, issuer)
                                actors[f"{name}.{kind}{number}"] = actor
                    for port, count in enumerate(program.credits):
                        self.tokens_in[name, port] += count
                case PmuProgram():
                    actors.update(self.pmu(name, program))
                case PcuProgram():
                    actors[name] = self.pcu(name, program)
        waiting = {name for name in actors if "." in name}
        while waiting:
            moved = False
            for name in list(actors):
                for _ in range(1 << 20):
                    step = next(actors[name], "end")
                    if step == "end":
                        del actors[name]
                        waiting.discard(name)
                        moved = True
                        break
                    if not step:
                        break
                    moved = True
            if not moved:
                raise Stall(f"{sorted(waiting)} wait")

    def net(self, net):
        turn = 0
        while True:
            end, packets = net.sources[turn]
            key = end.unit, end.port
            for _ in range(packets):
                if net.tokens:
                    while not self.tokens_out[key]:
                        yield False
                    self.tokens_out[key] -= 1
                    for sink in net.sinks:
                        self.tokens_in[sink.unit, sink.port] += 1
                    yield True
                    continue
                while True:
                    while not self.outputs[key]:
                        yield False
                    vector = self.outputs[key].popleft()
                    for sink in net.sinks:
                        self.inputs[sink.unit, sink.port].append(vector)
                    yield True
                    if vector[1] or len(net.sources) == 1:
                        break
            turn = (turn + 1) % len(net.sources)

    def rows(self, descriptor, point):
        """Bytes in the tensor of each row of a box: offset of the row, first and end."""
        size = descriptor.format.bytes
        x, y = point[:2]
        low = min(max(-x, 0), descriptor.box[0])
        high = max(low, min(descriptor.dims[0] - x, descriptor.box[0]))
        for row in range(descriptor.box[1]):
            inside = 0 <= y + row < descriptor.dims[1]
            start = descriptor.base + (y + row) * descriptor.strides[0] + x * size
            yield start, low * size, (high if inside else low) * size

    def commands(self, name, issuer):
        for program, point in commands_of(issuer):
            for wait in program.waits:
                while self.tokens_in[name, wait.port] < wait.tokens:
                    yield None
                self.tokens_in[name, wait.port] -= wait.tokens
            yield program, point

    def load(self, name, program, number, issuer):
        for command in self.commands(name, issuer):
            if command is None:
                yield False
                continue
            nest, point = command
            descriptor, argument = program.descriptors[nest.descriptor]
            assert not descriptor.row_bytes % self.bytes
            row_bytes = descriptor.row_bytes
            data = bytearray()
            for start, low, high in self.rows(descriptor, point):
                row = bytearray(row_bytes)
                row[low:high] = self.memory[argument][start + low : start + high]
                assert len(row) == row_bytes, "a load goes beyond its array"
                data += row
            for at in range(0, len(data), self.bytes):
                last = at + self.bytes == len(data)
                vector = bytes(data[at : at + self.bytes]), last, False
                self.outputs[name, number].append(vector)
            yield True

    def store(self, name, program, number, issuer):
        for command in self.commands(name, issuer):
            if command is None:
                yield False
                continue
            nest, point = command
            descriptor, argument = program.descriptors[nest.descriptor]
            assert not descriptor.row_bytes % self.bytes
            for start, low, high in self.rows(descriptor, point):
                row = b""
                while len(row) < descriptor.row_bytes:
                    while not self.inputs[name, number]:
                        yield False
                    row += self.inputs[name, number].popleft()[0]
                array = self.memory[argument]
                assert start + high <= len(array) or low == high
                array[start + low : start + high] = row[low:high]
                yield True

    def pmu(self, name, program):
        memory = np.zeros(self.config.pmu.capacity_bytes, np.uint8)
        closed = defaultdict(int)
        program.pack(
            width_bits=self.config.width_bits,
            capacity_bytes=self.config.pmu.capacity_bytes,
            slots=self.config.pmu.slots,
        )
        for kind, engines in (("W", program.writers), ("R", program.readers)):
            for number, engine in enumerate(engines):
                if engine is not None:
                    others = program.readers if kind == "W" else program.writers
                    against = [
                        ("R" if kind == "W" else "W", n)
                        for n, other in enumerate(others)
                        if other is not None and other.ring.buffer == engine.ring.buffer
                    ]
                    actor = self.engine(name, program, kind, number, memory, closed, against)
                    yield f"{name}.{kind}{number}", actor

    def engine(self, name, program, kind, number, memory, closed, against):
        engine = (program.writers if kind == "W" else program.readers)[number]
        lanes = lane_count(width_bits=self.config.width_bits, element_bytes=engine.element_bytes)
        rows = rows_log2(engine.access, lanes=lanes)
        source = _filtered(self.inputs[name, number], engine.modulus, engine.index)
        reports = [
            port
            for port, token in enumerate(program.tokens)
            if token.value == 1 + (kind == "R") * 2 + number
        ]
        size = engine.element_bytes
        for move in moves_of(engine):
            key = engine.ring.buffer, move.slot
            while any(closed[key, other] < move.lap + (kind == "R") for other in against):
                yield False
            at = _bytes_of(move.position, lanes, rows, size)
            if kind == "W":
                while (vector := next(source)) is None:
                    yield False
                memory[at] = np.frombuffer(vector[0], np.uint8)
            else:
                self.outputs[name, number].append((memory[at].tobytes(), move.last, move.final))
            if move.closes:
                closed[key, (kind, number)] += 1
                for port in reports:
                    self.tokens_out[name, port] += 1
            yield True

    def pcu(self, name, program):
        columns = self.config.grid_columns
        activations = _filtered(self.inputs[name, 0], 1, 0)
        weights = _filtered(self.inputs[name, 1], program.weight.modulus, program.weight.index)
        while True:
            final, groups = False, []
            while not final:
                rows, last = [], False
                while not last:
                    while (vector := next(activations)) is None:
                        yield False
                    data, last, final, _ = vector
                    rows.append(np.frombuffer(data, program.fmt.dtype))
                block = []
                for column in range(columns):
                    while (vector := next(weights)) is None:
                        yield False
                    block.append(np.frombuffer(vector[0], program.fmt.dtype))
                    assert vector[1] == (column == columns - 1), "a tile's weights are a packet"
                if not groups or not program.by_group or vector[3]:
                    groups.append([])
                groups[-1].append((np.array(rows), np.array(block).T))
            heights = {len(rows) for tiles in groups for rows, _ in tiles}
            assert len(heights) == 1, "tiles of a pass agree in rows"
            assert heights.pop() * len(groups[0]) <= self.config.pcu.accumulator_rows
            sums = [
                matmul(np.hstack([a for a, _ in tiles]), np.vstack([b for _, b in tiles]))
                for tiles in zip(*groups, strict=True)
            ]
            results = cast(np.vstack(sums), program.out)
            data = results.tobytes()
            if program.out == bf16 and len(results) % 2:
                data += bytes(self.bytes // 2)
            for number, at in enumerate(range(0, len(data), self.bytes), 1):
                final = at + self.bytes == len(data)
                last = final or (program.packet_vectors and number % program.packet_vectors == 0)
                self.outputs[name, 0].append((data[at : at + self.bytes], last, final))
            yield True
