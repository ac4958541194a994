"""Units placed by hand: numpy = emulator = RTL; routes go where they are told; what is refused."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.agcu import AgcuInput, AgcuOutput, AgcuProgram
from hw.arch.boxes.issuer_program import IssuerProgram, Wait
from hw.arch.config import named
from hw.arch.descriptor import Descriptor, ElementFormat
from hw.arch.errors import BadInputError, HangError
from hw.arch.loops import BoxLoop, LoopProgram
from hw.arch.pcu import PcuProgram
from hw.arch.pmu import EngineProgram, PmuInput, PmuOutput, PmuProgram, SlotRing
from hw.arch.ports import Direction, Link
from hw.arch.words.pmu_word import TokenSource
from hw.numeric.formats import bf16
from sim.run.job import Problem
from sw.hand_placement import Units
from sw.kernels.flash_attention import flash_attention
from sw.kernels.gemm import gemm
from sw.kernels.rms_norm import rms_norm
from sw.kernels.transpose import transpose

ROWS, COLUMNS, SLOTS = 24, 8, 4
#: Rows of a box, each a slot of two vectors of four elements.
BOX = 2


def tensor(number):
    """Rows of 8 elements of 16 bits at an argument of the launch."""
    rows = Descriptor(
        base=0,
        format=ElementFormat.BF16,
        dims=(COLUMNS, ROWS),
        strides=(COLUMNS * 2,),
        box=(COLUMNS, BOX),
    )
    return rows, number


def copy(at=(0, 1), *, via=None, slots=ROWS // BOX):
    """Y = X through the PMU at a place of `tiny`."""
    engine = EngineProgram(
        ring=SlotRing(stride=COLUMNS * BOX, count=SLOTS),
        loops=(LoopProgram(COLUMNS * BOX // 4, stride=4),),
        windows=LoopProgram(slots),
    )
    boxes = (BoxLoop(ROWS // BOX, 1, BOX),)
    units = tw.units("tiny")
    pmu, agcu = units.pmu[at], units.agcu[0]
    pmu.program = PmuProgram((engine, None), (engine, None), tokens=(TokenSource.R0,))
    agcu.program = AgcuProgram(
        loads=(IssuerProgram(0, boxes, (Wait(0),)), None),
        stores=(IssuerProgram(1, boxes), None),
        descriptors=(tensor(0), tensor(1)),
        credits=(SLOTS, 0),
    )
    units.route(agcu[AgcuOutput.LOAD_0], pmu[PmuInput.W0], via=via)
    units.route(pmu[PmuOutput.R0], agcu[AgcuInput.STORE_0])
    units.route(pmu.token(0), agcu.token(0))
    return units


@pytest.mark.parametrize("backend", ["emulator", "rtl"])
@pytest.mark.parametrize("at", [(0, 1), (1, 0)])
def test_a_copy_through_a_chosen_pmu(at, backend, seed, heavy):
    x = np.random.default_rng(seed).normal(size=(ROWS, COLUMNS)).astype(bf16.dtype)
    found = copy(at).run({"X": x}, {"Y": (x.shape, tw.bf16)}, backend=backend, seed=seed % 1000)
    assert found.Y.tobytes() == x.tobytes()
    if backend == "rtl":
        assert found.cycles > 0 and found.bytes_written == x.nbytes


@pytest.mark.parametrize("via", [[], [(1, 0), (1, 1)]])
def test_a_route_goes_where_it_is_told(via):
    program = copy(via=via).program()
    path = [(0, 0), *via, (0, 1)]
    links = {
        (here, output.output.direction)
        for here, tile in program.tiles.items()
        for output in tile.vectors.outputs
        if isinstance(output.output, Link)
    }
    steps = {(b[0] - a[0], b[1] - a[1]): a for a, b in zip(path, path[1:])}
    for step, here in steps.items():
        assert (here, next(each for each in Direction if each.step == step)) in links
    assert ((0, 0), Direction.EAST if via else Direction.SOUTH) not in links


def by_hand(part):
    """The units of a compiled part at their places, joined as its nets join them."""
    units = Units(part.chip.config)
    names = {**part.placement.tiles, **{n: (at,) for n, at in part.netlist.fixed.items()}}
    placed = {}
    for kind, at, program in part.chip.units():
        unit = getattr(units, kind.name)[at if len(at) > 1 else at[0]]
        unit.program = program
        placed[at] = unit

    def port(pin, net, side):
        unit = placed[names[pin.unit]]
        return unit.token(pin.port) if net.tokens else unit[getattr(unit.kind, side)(pin.port)]

    for net in part.netlist.nets:
        units.route(
            [port(pin, net, "outputs") for pin, _ in net.sources],
            [port(pin, net, "inputs") for pin in net.sinks],
            packets=[packets for _, packets in net.sources],
        )
    return units


@pytest.mark.parametrize("kernel", [gemm, transpose, rms_norm, flash_attention])
def test_units_of_a_kernel_placed_by_hand_compute_it(kernel, seed):
    rng = np.random.default_rng(seed)
    sizes = {name: int(rng.integers(8, 40)) for name in kernel.signature.dims}
    sizes |= {"H": 1, "G": 1} if "H" in sizes else {}
    problem = Problem(kernel, named["small"], sizes, bf16)
    (part,) = problem.compile().parts
    arrays = {
        spec.name: rng.normal(size=spec.shape).astype(spec.format.dtype) for spec in problem.inputs
    }
    *inputs, output = part.part.arrays
    found = by_hand(part).run(
        {spec.name: arrays[spec.name].reshape(spec.shape) for spec in inputs},
        {output.name: (output.shape, output.format)},
        backend="emulator",
    )
    assert found.outputs[output.name].tobytes() == kernel(*arrays.values()).tobytes()


def named_units():
    units = tw.units("tiny")
    units.pcu[0, 0].program = PcuProgram()
    return units


LOAD, WRITE = AgcuOutput.LOAD_0, PmuInput.W0
#: What breaks a rule, and the message.
REFUSED = {
    "chip": (lambda u: tw.units("tin"), "Chip must be one of .* not 'tin'.*tiny"),
    "kind": (lambda u: u.pmu[0, 0], r"Tile \(0, 0\) must be a PMU, not a PCU"),
    "mesh": (lambda u: u.pcu[2, 0], "must be on the mesh of 2 × 2 tiles, not"),
    "agcu": (lambda u: u.agcu[1], "AGCU must be one of the chip's 1, not 1"),
    "program": (
        lambda u: setattr(u.pmu[0, 1], "program", PcuProgram()),
        r"Program of PMU \(0, 1\) must be a PmuProgram, not PcuProgram",
    ),
    "two programs": (
        lambda u: setattr(u.pcu[0, 0], "program", PcuProgram()),
        r"PCU \(0, 0\) must have one program, not two",
    ),
    "port": (
        lambda u: u.pmu[0, 1][LOAD],
        r"Port of PMU \(0, 1\) must be one of PmuInput or PmuOutput \(W0, W1, R0, R1\), not",
    ),
    "token port": (lambda u: u.pmu[0, 1].token(-1), "must be 0 or more, not -1"),
    "direction": (
        lambda u: u.route(u.pmu[0, 1][WRITE], u.agcu[0][AgcuInput.STORE_0]),
        r"Route must start at an output, not at W0 of PMU \(0, 1\)",
    ),
    "input": (
        lambda u: u.route(u.agcu[0][LOAD], u.pmu[0, 1][PmuOutput.R0]),
        r"Route must end at an input, not at R0 of PMU \(0, 1\)",
    ),
    "mixed": (
        lambda u: u.route(u.agcu[0][LOAD], u.agcu[0].token(0)),
        "Route must join ports of vectors or ports of tokens, not LOAD_0 of AGCU 0 and token 0",
    ),
    "no port": (lambda u: u.route(u.agcu[0], u.agcu[0].token(0)), "not PlacedUnit"),
    "no source": (lambda u: u.route([], u.agcu[0].token(0)), "must have a source and a sink"),
    "packets": (
        lambda u: u.route(u.agcu[0][LOAD], u.pmu[0, 1][WRITE], packets=[1, 2]),
        "Packets must be a number for each of 1 sources, not 2",
    ),
    "no programs": (lambda u: tw.units("tiny").image(), "Units must have programs, not none"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_a_rule_is_refused(name):
    act, message = REFUSED[name]
    with pytest.raises(BadInputError, match=message):
        act(named_units())


def test_what_cannot_be_routed_or_ends_nowhere_is_refused():
    with pytest.raises(BadInputError, match=r"from switch to neighbour, none twice, not from \(0"):
        copy(via=[(1, 1)]).image()
    with pytest.raises(BadInputError, match=r"none twice, not from \(1, 0\) to \(0, 0\)"):
        copy(via=[(1, 0), (0, 0)]).image()
    units = copy()
    units.route(units.agcu[0][AgcuOutput.LOAD_1], units.pmu[0, 1][WRITE])
    with pytest.raises(BadInputError, match=r"Input port 0 of `PMU \(0, 1\)` must be in one net"):
        units.image()
    units = copy()
    units.route(units.agcu[0][AgcuOutput.LOAD_1], units.pmu[1, 0][WRITE])
    with pytest.raises(BadInputError, match=r"must join units of the netlist, not `PMU \(1, 0\)`"):
        units.image()
    units = copy()
    units.route(
        [units.pmu[0, 1][PmuOutput.R1], units.agcu[0][AgcuOutput.LOAD_1]],
        units.pmu[0, 1][PmuInput.W1],
        via=[],
    )
    with pytest.raises(BadInputError, match="one source and one sink for a path by `via`, not 2"):
        units.image()


def test_a_program_that_is_not_live_is_refused():
    with pytest.raises(BadInputError, match="Program must be live"):
        copy(slots=ROWS // BOX + 1).image()


def test_a_launch_that_hangs_is_reported_with_the_units_that_wait(heavy):
    x = np.zeros((ROWS, COLUMNS), bf16.dtype)
    with pytest.raises(HangError, match="no end: "):
        copy().run({"X": x}, {"Y": (x.shape, tw.bf16)}, backend="rtl", max_cycles=100)
    with pytest.raises(BadInputError, match="`X` must be an input or an output, not both"):
        copy().run({"X": x}, {"X": (x.shape, tw.bf16)}, backend="emulator")
