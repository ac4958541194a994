"""Loads of rows longer than a box: no byte behind an array is read, whatever its rows' length."""

import numpy as np
import pytest

from hw.arch.agcu import AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram
from hw.arch.config import named
from hw.arch.descriptor import MAX_BOX, Descriptor, ElementFormat
from hw.arch.loops import BoxLoop
from hw.numeric.formats import bf16, fp32
from sim.emulator.boxes import BoxStream
from sim.run.driver import compile_job, run
from sim.run.job import Job
from sw.prove.memory_order import reach
from sw.prove.unrolled_loops import box_points
from sw.timing.box_rows import BoxRows
from tests.sw.kernels.test_golden_kernels import operands, problem_of

KERNELS = ["softmax", "rms_norm", "layer_norm", "argmax", "gelu", "add", "silu"]


def drawn(rng, kernel, config, most, rows=20):
    """A kernel with rows of a random length above a box, that are no whole vectors."""
    vector = named[config].width_bits // 8
    form = [bf16, fp32][rng.integers(2)]
    columns = int(rng.integers(MAX_BOX + 1, most + 1))
    while not columns * form.bits // 8 % vector:
        columns = int(rng.integers(MAX_BOX + 1, most + 1))
    sizes = {"M": int(rng.integers(1, rows + 1)), "N": columns}
    return problem_of(kernel, sizes, form, config=config)


def require_exact_loads(compiled):
    """No load reaches a byte outside the elements of its array; returns the loads that end there.

    An array begins at address 0 here.
    """
    arrays = {each.name: each for each in (*compiled.arrays, *compiled.intermediates)}
    ends = 0
    for number, launch in compiled.launches:
        for agcu in compiled.parts[number].chip.agcus.values():
            for program in (each for load in agcu.loads if load for each in load.programs):
                descriptor, argument = agcu.descriptors[program.descriptor]
                given = launch.arguments[argument]
                begin, end = reach(descriptor, descriptor.base + given.offset, box_points(program))
                last = arrays[given.array].reach
                assert 0 <= begin <= end <= last, (given.array, descriptor, end, last)
                ends += end == last
    return ends


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_load_ends_with_the_array(kernel, seed):
    rng = np.random.default_rng(seed)
    for config in ("tiny", "small"):
        problem = drawn(rng, kernel, config, most=700)
        assert require_exact_loads(problem.compile()), problem.params


@pytest.mark.parametrize("kernel", ["softmax", "rms_norm"])
def test_results_are_those_of_golden(kernel, seed):
    rng = np.random.default_rng(seed)
    for config in ("tiny", "small"):
        problem = drawn(rng, kernel, config, most=500, rows=9)
        job = Job(problem, backend="emulator", inputs=operands(rng, problem), seed=1)
        compiled, fields = compile_job(job)
        outcome = run(job, compiled, fields)
        assert outcome.report["verified"], (problem.params, outcome.problems)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("config", ["tiny", "small", "large"])
def test_a_chip_is_golden_in_predicted_cycles(config, seed, heavy):
    """A beat outside the arrays ends a run."""
    rng = np.random.default_rng(seed)
    for kernel in ("softmax", "rms_norm", "layer_norm", "argmax"):
        problem = drawn(rng, kernel, config, most=700, rows=60)
        job = Job(problem, backend="rtl", inputs=operands(rng, problem), seed=1)
        compiled, fields = compile_job(job)
        outcome = run(job, compiled, fields)
        report = outcome.report
        assert report["verified"], (problem.params, outcome.problems)
        told = problem.params, report["cycles"], report["predicted_cycles"]
        assert report["predicted_cycles"] == pytest.approx(report["cycles"], rel=0.12), told


def test_beats_and_bytes_are_those_of_shorter_rows(seed):
    """Those of the timing model and of the emulator, against an element a step."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        dims = tuple(int(each) for each in rng.integers(1, 12, 3))
        described = Descriptor(
            base=0,
            format=ElementFormat.BF16,
            dims=dims,
            strides=(16 * int(rng.integers(1, 4)), 16 * int(rng.integers(1, 4))),
            box=(8, int(rng.integers(1, 5)), 2),
            shortfall=int(rng.integers(0, dims[0])),
        )
        loops = tuple(BoxLoop(4, dimension, int(rng.integers(-2, 5))) for dimension in range(3))
        issuer = IssuerProgram(0, loops)
        points = box_points(issuer)
        beats = elements = 0
        for corner in points[:, :3]:
            for row in np.ndindex(described.box[1:]):
                place = corner[1:] + row
                inside = ((place >= 0) & (place < dims[1:])).all()
                end = dims[0] - described.shortfall * (place[0] == dims[1] - 1)
                columns = [corner[0] + x for x in range(8) if 0 <= corner[0] + x < end]
                start = (place * described.strides).sum()
                touched = {int(start + 2 * column) // 16 for column in columns if inside}
                beats += len(touched)
                elements += len(columns) * bool(inside)
        agcu = AgcuProgram(loads=(issuer,), descriptors=((described, 0),))
        assert BoxRows(agcu, issuer, (0,), 16, 16).beats() == beats, described
        stream = BoxStream(described, 0, points, 16, 40, 0)
        assert (stream.beats(), stream.bytes_inside()) == (beats, 2 * elements)
