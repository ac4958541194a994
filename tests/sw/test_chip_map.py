"""Chip map as text: every unit and stream, rates that add up, and what bounds the speed."""

import pytest

import tilewright as tw
from hw.arch.config import named
from sw.chip_map import chip_map
from sw.compiler import compile_kernel
from sw.kernels.attention import attention
from sw.kernels.matmul import matmul
from sw.kernels.residual import residual
from sw.kernels.softmax import softmax
from sw.kernels.transpose import transpose


def compiled(kernel, config="small", **dims):
    return compile_kernel(kernel, named[config], dims=dims, dtype=tw.bf16)


def rows(text, head):
    """Lines of the table whose first column has this name."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(head)) + 1
    return lines[first : lines.index("", first)]


@pytest.mark.parametrize(
    ("kernel", "dims"), [(matmul, {"M": 37, "N": 40, "K": 50}), (softmax, {"M": 40, "N": 50})]
)
def test_every_unit_and_every_stream_of_vectors_has_a_line(kernel, dims):
    found = compiled(kernel, "tiny", **dims)
    text, netlist = chip_map(found), found.parts[0].netlist
    assert {line.split()[0] for line in rows(text, "unit ")} == set(netlist.units)
    streams = {net.name for net in netlist.nets if not net.tokens}
    assert {line.split()[0] for line in rows(text, "stream ")} == streams


def test_rates_are_those_of_the_tensors():
    """Streams that load or store a tensor move its bytes once."""
    found = compiled(transpose, M=256, N=512)
    (part,) = found.parts
    prediction = part.prediction()
    beats = 256 * 512 * 2 // 32
    for kind in ("load", "store"):
        nets = [net for net in part.netlist.nets if net.name.endswith(kind)]
        shown = {
            line.split()[0]: float(line.split()[2]) for line in rows(chip_map(found), "stream")
        }
        moved = sum(shown[net.name] for net in nets) * prediction.kernel
        assert moved == pytest.approx(beats, abs=0.005 * len(nets) * prediction.kernel)


def test_a_part_of_several_iterations_says_how_long_all_take():
    found = compiled(attention, H=3, M=64, S=64, D=32)
    (part,) = found.parts
    cycles = found.predicted_cycles - part.prediction().before
    assert part.iterations == 3
    assert f"\n3 iterations take {cycles:,} cycles; the table is of one" in chip_map(found)
    assert "iterations take" not in chip_map(compiled(attention, H=1, M=64, S=64, D=32))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("dims", "bound"),
    [
        ({"M": 256, "N": 256, "K": 256}, "the PCUs compute"),
        ({"M": 1, "N": 1024, "K": 256}, "the AGCUs move beats"),
        ({"M": 8, "N": 8, "K": 8}, "latencies, as no unit is busy for long: "),
    ],
)
def test_the_bound_is_the_busiest_kind_of_unit(dims, bound):
    assert f"what bounds the speed: {bound}" in chip_map(compiled(matmul, **dims))


def test_lanes_that_take_the_sums_of_a_product_are_work_of_their_pcu():
    found = compiled(residual, M=128, N=128, K=16)
    assert "what bounds the speed: the PCUs compute" in chip_map(found)
    prediction = found.parts[0].prediction()
    pcus = {name for name in prediction.busy if name.startswith("pcu")}
    assert prediction.by_lanes == pcus
    assert not compiled(matmul, M=128, N=128, K=128).parts[0].prediction().by_lanes
