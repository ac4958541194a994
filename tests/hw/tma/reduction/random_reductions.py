"""Random runs of TMA units that reduce into one tile at once, against numpy."""

import dataclasses
import random

import numpy as np

from hw.arch.descriptor import Descriptor
from hw.tma.standalone.unit_commands import TmaOperation
from tests.hw.tma.model import random_bytes, tensor_bytes
from tests.hw.tma.reduction.reduced_boxes import box_reduce
from tests.hw.tma.reduction.reduction_stand import UnitGroup
from tests.hw.tma.standalone.native_unit import UnitCommand
from tests.native.native_memory import MemoryTiming

__all__ = ["Reductions", "run_reductions"]

_TABLE, _REGION, _SIZE = 0x1000, 0x3000, 0x6000
#: Runs between two resets, each with descriptors of its own, so that no cache has an old one.
_ROUND = 20
#: Boxes of a tile.
_BOXES = 3


@dataclasses.dataclass
class Reductions:
    """Sums of the runs: commands, those of which the box leaves the tile, and wrong memories."""

    runs: int = 0
    commands: int = 0
    ragged: int = 0
    across: int = 0
    cycles: int = 0
    wrong: int = 0


def _timing(rng):
    stalls = [rng.choice([0.0, 0.0, 0.3, 0.7]) for _ in range(5)]
    return MemoryTiming(
        latency=rng.choice([1, 10, 40]),
        jitter=rng.choice([0, 30]),
        stalls=stalls,
        early_reads=rng.random() < 0.5,
        late_writes=rng.random() < 0.5,
    )


def _tile(rng, format):
    """A tile near the end of a page or across it, and boxes of it of several shapes."""
    units = rng.randint(1, 6)
    row = 16 * units
    rows = rng.randint(1, 8)
    width = rng.randint(row // format.bytes - 3, row // format.bytes)
    stride = row + 16 * rng.choice([0, 1, 5])
    reach = (rows - 1) * stride + row
    base = _REGION + rng.choice([0, 0x1000 - reach // 2, rng.randrange(0x2000)]) // 16 * 16
    whole = Descriptor(
        base=base,
        format=format,
        dims=(width, rows),
        strides=(stride,),
        box=(row // format.bytes, rows),
    )
    boxes = [whole]
    while len(boxes) < _BOXES:
        box = (16 * rng.randint(1, units) // format.bytes, rng.randint(1, rows))
        boxes.append(dataclasses.replace(whole, box=box))
    return boxes


def run_reductions(model, engines, seed, runs, pairs, *, broken=False):
    """Runs of so many engines, each by an operation and a format of ``pairs``; their sums."""
    rng = random.Random(seed)
    sums = Reductions()
    data = random_bytes(seed, _SIZE)
    while sums.runs < runs:
        group = UnitGroup.of(
            model, engines, data, seed=rng.getrandbits(32), timing=_timing(rng), broken=broken
        )
        contents = [random_bytes(rng.getrandbits(32), 4096) for _ in range(engines)]
        for unit, content in zip(group.units, contents, strict=True):
            unit.fill(content)
        for number in range(min(_ROUND, runs - sums.runs)):
            _run(rng, group, contents, data, number, rng.choice(pairs), sums)
        sums.cycles += model.cycle
    return sums


def _run(rng, group, contents, data, number, pair, sums):
    """All units reduce into one tile; the whole memory is compared."""
    operation, format = pair
    boxes = _tile(rng, format)
    pointers = [_TABLE + 128 * (_BOXES * number + index) for index in range(_BOXES)]
    for pointer, descriptor in zip(pointers, boxes, strict=True):
        data[pointer : pointer + 128] = np.frombuffer(descriptor.pack(), np.uint8)
    expected = data.copy()
    commands = []
    for content in contents:
        given = []
        for _ in range(rng.randint(1, 3)):
            index = rng.randrange(_BOXES)
            descriptor = boxes[index]
            at = [
                rng.choice([0, rng.randint(-2, dim - 1)]) if index else 0 for dim in descriptor.dims
            ]
            local = 8 * rng.randrange((4096 - descriptor.box_bytes) // 8)
            box = content[local : local + descriptor.box_bytes]
            box_reduce(expected, descriptor, at, box, operation)
            fields = {"local": local, "reduction": operation.value}
            given.append(UnitCommand(TmaOperation.REDUCE, pointers[index], at, fields))
            sums.ragged += any(
                a < 0 or a + b > d for a, b, d in zip(at, descriptor.box, descriptor.dims)
            )
        commands.append(given)
        sums.commands += len(given)
    first, last = boxes[0].base, boxes[0].base + tensor_bytes(boxes[0]) - 1
    sums.across += first >> 12 != last >> 12
    stalls = {f"unit{n}_i_commands": rng.choice([0.0, 0.9]) for n in range(len(contents))}
    codes = group.run(commands, stalls=stalls)
    assert codes == [[0] * len(given) for given in commands]
    sums.runs += 1
    if not np.array_equal(data, expected):
        sums.wrong += 1
        data[:] = expected
