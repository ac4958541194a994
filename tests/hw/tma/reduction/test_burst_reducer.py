"""The burst reducer: reducing bursts among plain ones, errors, the page, and drains."""

import random

import numpy as np
import pytest

from hw.arch.boxes.reductions import REDUCED_FORMATS, ReductionOperation
from hw.arch.descriptor import ElementFormat
from hw.tma.reduction import burst_reducer
from tests.hw.tma.model import random_bytes
from tests.hw.tma.reduction.reduced_boxes import reduced
from tests.hw.tma.reduction.reducer_bench import ReducerBench
from tests.hw.tma.test_faults import mutant
from tests.slow_cases import quick_first

_ADD = (ReductionOperation.ADD, ElementFormat.INT32)
_SIZE = 0x4000


def _bench(data, *, module=burst_reducer, data_bits=64, **kwargs):
    return ReducerBench(module.BurstReducer, data, data_bits=data_bits, **kwargs)


def _burst(rng, address, reduction, beats, data_bits=64):
    """A burst of random elements; whole elements have no strobes."""
    size = 4 if reduction is None else reduction[1].bytes
    content = []
    for _ in range(beats):
        strobe = 0
        for element in range(data_bits // 8 // size):
            strobe |= (rng.random() < 0.8) * ((1 << size) - 1) << element * size
        content.append((rng.getrandbits(data_bits), strobe))
    return address, reduction, content


def apply(data, burst, data_bits=64):
    """Do to the memory what a burst is to do."""
    address, reduction, content = burst
    size = data_bits // 8
    for word, strobe in content:
        new = np.frombuffer(word.to_bytes(size, "little"), np.uint8)
        old = data[address : address + size].copy()
        if reduction is not None:
            operation, format = reduction
            new = reduced(operation, format, old, new)
        enabled = np.array([bool(strobe >> n & 1) for n in range(size)])
        data[address : address + size] = np.where(enabled, new, old)
        address += size


def _random_bursts(rng, count, data_bits):
    size = data_bits // 8
    longest = min(256, 4096 // size)
    bursts = []
    for _ in range(count):
        operation = rng.choice(list(ReductionOperation))
        format = rng.choice(REDUCED_FORMATS[operation])
        reduction = (operation, format) if rng.random() < 0.6 else None
        beats = rng.choice([1, 2, rng.randint(1, 20), *[longest] * (rng.random() < 0.1)])
        # Few places, so that bursts meet; none crosses a page.
        at = 0x1000 * rng.randint(0, 1) + size * rng.randint(0, min(8, longest - beats))
        bursts.append(_burst(rng, at, reduction, beats, data_bits))
    return bursts


@pytest.mark.parametrize(
    ("data_bits", "memory"),
    quick_first(
        [
            (64, {"latency": 20, "jitter": 30, "stall": 0.6}),
            (64, {"latency": 3}),
            (256, {"latency": 8, "stall": 0.2}),
        ]
    ),
)
def test_bursts_take_effect_in_order(data_bits, memory, seed, draws):
    rng = random.Random(seed)
    data = random_bytes(seed, _SIZE)
    expected = data.copy()
    bursts = _random_bursts(rng, draws(20, 60), data_bits)
    for burst in bursts:
        apply(expected, burst, data_bits)
    waits = random.Random(seed + 1)
    bench = _bench(
        data, data_bits=data_bits, seed=seed, granted=lambda cycle: waits.random() < 0.3, **memory
    )
    bench.run(bursts)
    assert bench.answers == [(0, 0)] * len(bursts)
    assert np.array_equal(data, expected)
    # A page per reducing burst, and one read of each.
    pages = [address >> 12 for address, reduction, _ in bursts if reduction]
    assert bench.asked == pages
    assert [address >> 12 for address, _ in bench.memory.read_bursts] == pages
    assert len(bench.memory.write_bursts) == len(bursts)


def test_plain_bursts_pass_without_a_delay():
    data = random_bytes(1, _SIZE)
    rng = random.Random(1)
    bench = _bench(data, latency=30)
    bench.run([_burst(rng, 256 * n, None, 8) for n in range(16)])
    beats = bench.memory.write_beats
    assert len(beats) == 128 and beats[-1] - beats[0] < 128 + 17
    assert bench.memory.most_unanswered >= 4 and not bench.asked


def test_the_page_is_held_from_before_the_read_until_the_response():
    data = random_bytes(1, _SIZE)
    bench = _bench(data, latency=12, granted=lambda cycle: cycle >= 40)
    bench.run([_burst(random.Random(1), 0x2340, _ADD, 4)])
    held = [cycle for cycle, asks in enumerate(bench.held) if asks]
    assert bench.asked == [2] and held == list(range(held[0], held[-1] + 1))
    assert held[0] < 40 < bench.memory.read_beats[0] < bench.memory.write_beats[0]
    assert bench.memory.write_beats[-1] + 12 <= held[-1] < len(bench.held) - 1


def _failed_beat_stays(module, beat, code):
    """Whether a beat of which the read fails is not written, and all others are."""
    data = random_bytes(1, _SIZE)
    expected = data.copy()
    rng = random.Random(1)
    bursts = [_burst(rng, 0x100, _ADD, 5), _burst(rng, 0x100, _ADD, 5)]
    failing = (0x100, _ADD, list(bursts[0][2]))
    failing[2][beat] = (0, 0)
    apply(expected, failing)
    apply(expected, bursts[1])
    bench = _bench(data, module=module, errors={("read", beat): code})
    bench.run(bursts)
    right = bench.answers == [(code, 1), (0, 0)] and bench.asked == [0, 0]
    return right and np.array_equal(data, expected)


@pytest.mark.parametrize("code", [2, 3])
@pytest.mark.parametrize("beat", [0, 2, 4])
def test_a_beat_that_is_not_read_is_not_written(beat, code):
    assert _failed_beat_stays(burst_reducer, beat, code)


@pytest.mark.parametrize("code", [2, 3])
def test_the_response_to_the_write_is_the_bursts(code):
    rng = random.Random(1)
    bench = _bench(random_bytes(1, _SIZE), errors={("write", 1): code})
    bench.run([_burst(rng, 0, None, 2), _burst(rng, 0x100, _ADD, 5), _burst(rng, 0, _ADD, 1)])
    assert bench.answers == [(0, 0), (code, 0), (0, 0)]


@pytest.mark.slow
@pytest.mark.parametrize("drain", range(0, 90, 3))
def test_a_drain_leaves_each_burst_whole_or_undone(drain, seed):
    rng = random.Random(seed)
    data = random_bytes(seed, _SIZE)
    bursts = [
        _burst(rng, 0x100, (ReductionOperation.XOR, ElementFormat.INT32), 6) for _ in range(4)
    ]
    counts = []
    for done in range(len(bursts) + 1):
        expected = data.copy()
        for burst in bursts[:done]:
            apply(expected, burst)
        counts.append(expected)
    bench = _bench(data, latency=5, granted=lambda cycle: cycle > 20)
    bench.run(bursts, drain=drain)
    done = len(bench.memory.write_bursts)
    assert bench.answers == [(0, 0)] * 4
    assert np.array_equal(data, counts[done])
    assert len(bench.memory.read_bursts) == done
    assert done == 0 if drain < 20 else done < 4
    assert not bench.held[-1]


def _ends_right(module, seed):
    """Whether plain and reducing bursts at one place end as one after the other would."""
    rng = random.Random(seed)
    data = random_bytes(seed, _SIZE)
    expected = data.copy()
    bursts = [_burst(rng, 0x100, reduction, 3) for reduction in (None, _ADD, None, _ADD) * 4]
    for burst in bursts:
        apply(expected, burst)
    bench = _bench(data, module=module, latency=30)
    bench.run(bursts)
    return np.array_equal(data, expected)


def test_bursts_at_one_place_end_right(seed):
    assert _ends_right(burst_reducer, seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("healthy", "faulty"),
    [
        # A burst begins before those before it are answered, or a plain one before it is.
        ("& (unanswered == 0)", ""),
        ("& (whole == 0) & ~collecting", ""),
    ],
)
def test_a_fault_of_the_order_is_found(healthy, faulty, seed):
    copy = mutant(burst_reducer, healthy, faulty)
    try:
        right = _ends_right(copy, seed)
    except AssertionError:
        # A rule of AXI4 is broken, or a burst has no answer.
        right = False
    assert not right


def test_a_failed_beat_that_is_written_is_found():
    copy = mutant(burst_reducer, "Mux(reads.rresp[1], 0, beat.strobe)", "beat.strobe")
    assert not _failed_beat_stays(copy, 2, 2)
