"""tma-c: share of the memory port that boxes of a TMA unit use, by their shape and the latency."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from gen.verilog import emit
from hw.arch.descriptor import DESCRIPTOR_BYTES, STORED_WORDS, Descriptor, ElementFormat
from hw.arch.tma_sizes import TmaSizes
from hw.tma.commands import command_layout
from hw.tma.descriptor_file import descriptor_write_layout
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.engine_stand import EngineStand
from tests.hw.tma.model import random_bytes
from tests.hw.tma.standalone.native_unit import NativeUnit, UnitCommand
from tests.hw.tma.standalone.unit_stand import UnitStand
from tests.native.clocked_bundle import ClockedBundle
from tests.native.heavy_model import heavy_model
from tests.native.native_memory import MemoryTiming, NativeMemory
from tests.native.port_glue import words_of

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "tma_unit.md"
_BYTES = 4 << 20
_TABLE, _BASE = 0x1000, 0x100000
#: Sizes of the unit and of the engine.
_LANDING, _OUTSTANDING = 512, 128
_SIZES = {
    width_bits: TmaSizes(
        width_bits=width_bits,
        landing_beats=_LANDING,
        outstanding=_OUTSTANDING,
        scratchpad_bytes=65_536,
    )
    for width_bits in (64, 256)
}
#: Operation and the channel of its data.
_SIDES = {"load": (TmaOperation.LOAD, "R"), "store": (TmaOperation.STORE, "W")}


@dataclasses.dataclass(frozen=True)
class _Shape:
    """Boxes of rows, which are ``pitch`` bytes apart in memory; ``across`` of them lie abreast.

    ``least`` is the share that they must use, by latency.
    """

    row: int
    rows: int
    pitch: int
    across: int = 1
    least: dict[int, float] = dataclasses.field(default_factory=dict)

    @property
    def boxes(self):
        """Boxes of `_BYTES` in all."""
        return _BYTES // (self.row * self.rows)

    @property
    def bytes(self):
        """Bytes of all boxes."""
        return self.boxes * self.row * self.rows

    def descriptor(self, base):
        return Descriptor(
            base=base,
            format=ElementFormat.BF16,
            dims=(self.across * self.row // 2, -(-self.boxes // self.across) * self.rows),
            strides=(self.pitch,),
            box=(self.row // 2, self.rows),
        )

    def at(self, number):
        """Coordinates of a box."""
        return number % self.across * self.row // 2, number // self.across * self.rows


_ALL, _NEAR = (10, 100, 300), (10, 100)
_SHAPES = {
    "contiguous, 16 KiB": _Shape(512, 32, 512, least=dict.fromkeys(_ALL, 0.98)),
    "64 × 64 bf16 of 1,024 columns": _Shape(128, 64, 2048, 16, dict.fromkeys(_ALL, 0.98)),
    "one row of 64 B": _Shape(64, 1, 64, least=dict.fromkeys(_NEAR, 0.95)),
    "256 B": _Shape(256, 1, 256, least=dict.fromkeys(_NEAR, 0.99)),
    "4 KiB": _Shape(512, 8, 512, least=dict.fromkeys(_NEAR, 0.995)),
    "64 rows of 32 B, pitch 32 B": _Shape(32, 64, 32, least=dict.fromkeys(_NEAR, 0.95)),
    "64 rows of 16 B, pitch 48 B": _Shape(16, 64, 48, least=dict.fromkeys(_NEAR, 0)),
    "64 rows of 48 B, pitch 144 B": _Shape(48, 64, 144, least=dict.fromkeys(_NEAR, 0)),
}


@pytest.fixture(scope="module")
def model(heavy_lock):
    parts = {}
    for width_bits, sizes in _SIZES.items():
        parts[f"tma{width_bits}"] = UnitStand(sizes)
        parts[f"engine{width_bits}"] = EngineStand(
            width_bits=width_bits, landing_beats=_LANDING, outstanding=_OUTSTANDING
        )
    bundle = ClockedBundle(parts)
    with heavy_model(heavy_lock, emit(bundle), bundle) as built:
        yield built


def _commands(shape, side, width_bits, table, boxes):
    """Commands of boxes by turns of the descriptors in the table, one after another in the
    scratchpad."""
    vector = width_bits // 8
    step = -(-shape.row * shape.rows // vector) * vector
    slots = _SIZES[width_bits].scratchpad_bytes // step
    return [
        UnitCommand(
            _SIDES[side][0],
            table[number % len(table)],
            shape.at(number // len(table)),
            {"local": number % slots * step},
        )
        for number in range(boxes)
    ]


def _run_unit(model, side, width_bits, latency, shape, bases=(_BASE,)):
    """The run of all boxes by the unit, their descriptors prefetched, and its memory."""
    model.reset(1)
    data = random_bytes(1, _BASE + 16 * _BYTES)
    table = [_TABLE + DESCRIPTOR_BYTES * number for number in range(len(bases))]
    for at, base in zip(table, bases):
        packed = shape.descriptor(base).pack()
        data[at : at + DESCRIPTOR_BYTES] = np.frombuffer(packed, np.uint8)
    name, sizes = f"tma{width_bits}", _SIZES[width_bits]
    before = NativeMemory(data, timing=MemoryTiming(latency=latency))
    fetched = [UnitCommand(TmaOperation.PREFETCH, at) for at in table]
    NativeUnit(model, name, sizes, before).run(fetched)
    memory = NativeMemory(data, timing=MemoryTiming(latency=latency))
    unit = NativeUnit(model, name, sizes, memory)
    run = unit.run(_commands(shape, side, width_bits, table, shape.boxes))
    assert {code for _, code in run.completions} == {0}
    return run, memory


def _share(shape, width_bits, first, memory, side):
    """Useful bytes by what the port can move from the first command to the last beat."""
    cycles = memory.last[_SIDES[side][1]] - first + 1
    return shape.bytes / (cycles * width_bits // 8)


def _run_engine(model, side, width_bits, latency, shape):
    """First command and memory of the engine without features; the loop is as of the unit."""
    model.reset(1)
    memory = NativeMemory(
        random_bytes(1, _BASE + 16 * _BYTES), timing=MemoryTiming(latency=latency)
    )
    name = f"engine{width_bits}"
    model.attach(f"{name}_axi", memory)
    packed = shape.descriptor(_BASE).pack()[: 8 * STORED_WORDS]
    described, given = descriptor_write_layout(8), command_layout(8)
    at = described["words"].offset
    model.run(
        {f"{name}_i_descriptor": _rows([int.from_bytes(packed, "little") << at], described)}, {}
    )
    at = given["coordinates"].offset
    places = [shape.at(number) for number in range(shape.boxes)]
    commands = _rows([(x | y << 32) << at for x, y in places], given)
    vectors = shape.bytes * 8 // width_bits
    if side == "load":
        sent = {f"{name}_i_loads": commands}
        expected = {f"{name}_o_loaded": vectors}
    else:
        data = np.zeros((vectors, words_of(width_bits + 2)), np.uint32)
        sent = {f"{name}_i_stores": commands, f"{name}_i_vectors": data}
        expected = {f"{name}_o_stored": shape.boxes}
    crossed = model.run(sent, expected)
    return crossed[f"{name}_i_{side}s"].first_cycle, memory


def _rows(payloads, layout):
    size = 4 * words_of(layout.size)
    raw = b"".join(payload.to_bytes(size, "little") for payload in payloads)
    return np.frombuffer(raw, "<u4").reshape(-1, size // 4)


def _cases():
    """Shapes by width; rows of 32 bytes are whole beats of the wider one."""
    for width_bits in _SIZES:
        for name in _SHAPES:
            if width_bits == 256 or "32 B" not in name:
                yield width_bits, name


_GOAL = "contiguous, 64 x 64: 0.98; 64 B: 0.95; 256 B: 0.99; 4 KiB: 0.995; rows of 32 B: 0.95"


@pytest.mark.slow
@pytest.mark.must("tma-c", goal=_GOAL)
@pytest.mark.parametrize(("width_bits", "name"), list(_cases()))
def test_boxes_use_the_port(model, width_bits, name, figure):
    shape = _SHAPES[name]
    page = _PAGE.read_text(encoding="utf-8")
    whole = shape.row * 8 % width_bits == 0
    found = []
    for latency, least in shape.least.items():
        shares = []
        for side in _SIDES:
            run, memory = _run_unit(model, side, width_bits, latency, shape)
            shares.append(_share(shape, width_bits, run.first_command, memory, side))
            assert shares[-1] >= least
        for side in _SIDES if whole else ():
            first, memory = _run_engine(model, side, width_bits, latency, shape)
            shares.append(_share(shape, width_bits, first, memory, side))
        cells = [f"{each:.3f}" for each in shares] + ["–"] * (4 - len(shares))
        row = f"| {name} | {width_bits} | {latency} | {' | '.join(cells)} |"
        assert row in page, row
        found.append(f"latency {latency}: {', '.join(cells[:2])}")
    figure(f"{name} at {width_bits} bits, loads and stores: {'; '.join(found)}")


@pytest.mark.slow
@pytest.mark.must("tma-c", goal="no idle cycle between boxes of 4 beats of two descriptors")
@pytest.mark.parametrize("width_bits", list(_SIZES))
def test_no_cycle_is_idle_between_boxes_of_two_descriptors(model, width_bits, figure):
    row = 4 * width_bits // 8
    shape = _Shape(row, 1, row)
    for side, (_, channel) in _SIDES.items():
        for latency in _NEAR:
            bases = (_BASE, _BASE + 2 * _BYTES)
            _, memory = _run_unit(model, side, width_bits, latency, shape, bases)
            assert memory.beats[channel] == 4 * shape.boxes
            assert memory.idle[channel] == 0
    figure(f"{width_bits} bits: {shape.boxes} boxes of 4 beats, idle cycles 0")
