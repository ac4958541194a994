"""Launches that a launch list cannot hold, reach beyond an array or have no order are refused."""

import dataclasses
import random

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from sw.array_spec import ArraySpec
from sw.compiler import compile_kernel
from sw.parts.part import Argument, PartLaunch
from tests.sw.parts.hand_divisions import DIVISIONS, divided_by

KERNELS = {kernel.name: kernel for kernel in DIVISIONS}
BATCHED = {"H": 3, "M": 8, "K": 16, "N": 16}


def compiled(monkeypatch, name, dims, change=lambda division: division, dtype=tw.bf16):
    kernel = KERNELS[name]
    divided_by(monkeypatch, change(DIVISIONS[kernel](dtype, dtype, **dims)))
    return compile_kernel(kernel, named["tiny"], dims=dims, dtype=dtype)


def launched(**fields):
    """Function that changes the first launch of the last part of a division."""

    def change(division):
        part = division.parts[-1]
        first = dataclasses.replace(part.launches[0], **fields)
        part = dataclasses.replace(part, launches=(first, *part.launches[1:]))
        return dataclasses.replace(division, parts=(*division.parts[:-1], part))

    return change


def argument(number, **fields):
    """Function that changes one argument of that launch."""

    def change(division):
        launch = division.parts[-1].launches[0]
        arguments = list(launch.arguments)
        arguments[number] = dataclasses.replace(arguments[number], **fields)
        return launched(arguments=tuple(arguments))(division)

    return change


REFUSED = (
    (launched(repeat=0), "Iterations must be from 1 to 4294967295, not 0"),
    (launched(repeat=4), r"stay within the 768 bytes of A, not reach from byte 0 to 1024"),
    (launched(arguments=(Argument("A"),)), "Arguments must be 3, not 1"),
    (argument(0, array="Q"), "Argument must be one of A, B, C, not Q"),
    (argument(0, stride=200), "Stride of A must be a multiple of 16 bytes, not 200"),
    (argument(1, offset=8), "Offset of B must be a multiple of 16 bytes, not 8"),
    (argument(2, stride=-256), "not reach from byte -512 to 256"),
)


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_launches_at_fault_are_refused_with_part_and_line(monkeypatch, change, message):
    with pytest.raises(BadInputError, match=message) as caught:
        compiled(monkeypatch, "batched", BATCHED, change)
    assert caught.value.message.startswith("part 1 of 1: hand_divisions.py:")
    assert caught.value.where.startswith("hand_divisions.py:")


def test_more_launches_than_the_list_has_numbers_are_refused(monkeypatch):
    def many(division):
        part = division.parts[0]
        launches = (PartLaunch(part.launches[0].arguments),) * 65536
        return dataclasses.replace(division, parts=(dataclasses.replace(part, launches=launches),))

    with pytest.raises(BadInputError, match="fewer than 65536, not 65536"):
        compiled(monkeypatch, "batched", BATCHED, many)


def test_an_intermediate_of_another_format_or_read_too_early_is_refused(monkeypatch):
    dims = {"M": 8, "K": 16, "N": 16}

    def narrow(division):
        return dataclasses.replace(
            division, intermediates=(ArraySpec("T", (8, 16), tw.bf16, output=True),)
        )

    def turned(division):
        return dataclasses.replace(division, parts=division.parts[::-1])

    with pytest.raises(BadInputError, match=r"part 1 of 2: .*Array T must be fp32, not bf16"):
        compiled(monkeypatch, "scores", dims, narrow)
    with pytest.raises(BadInputError, match=r"part 1 of 2: .*T must be written before it is read"):
        compiled(monkeypatch, "scores", dims, turned)


def test_a_plan_whose_streams_meet_in_two_iterations_is_replaced(monkeypatch):
    """Two AGCUs store columns of C: apart if iterations are, or if they lie whole rows apart.

    Half a row apart, one writes where the other does.
    """
    dims = {"H": 3, "M": 64, "K": 64, "N": 64}
    kernel, config = KERNELS["batched"], named["small"]
    division = DIVISIONS[kernel](tw.bf16, tw.bf16, **dims)
    stores = {}
    for step in (64 * 128, 32 * 128, 64):
        divided_by(monkeypatch, argument(2, stride=step)(division))
        made = compile_kernel(kernel, config, dims=dims, dtype=tw.bf16)
        agcus = made.parts[0].chip.agcus.values()
        stores[step] = sum(each is not None for agcu in agcus for each in agcu.stores)
    assert stores == {64 * 128: 2, 32 * 128: 2, 64: 1}
    assert "given up: hand_divisions.py:" in made.notes[0]
    assert "in another iteration" in made.notes[0]


def test_iterations_that_meet_in_one_tensor_are_launches(monkeypatch):
    """In place, one iteration apart: iteration i reads what another one writes."""
    dims = {"H": 3, "M": 8, "N": 16}

    def shifted(division):
        step = division.parts[0].arrays[1].bytes
        x = Argument("Y", step, step)
        return launched(arguments=(x, Argument("Y", 0, step)), repeat=2)(division)

    def earlier(division):
        step = division.parts[0].arrays[1].bytes
        x = Argument("Y", 0, step)
        return launched(arguments=(x, Argument("Y", step, step)), repeat=2)(division)

    for change, cause in ((earlier, "must wait for a token"), (shifted, "in a later iteration")):
        (part,) = compiled(monkeypatch, "head_softmax", dims, change).parts
        assert [each.repeat for each in part.part.launches] == [1, 1]
        (note,) = (each for each in part.notes if "2 launches instead" in each)
        assert cause in note


def test_a_schedule_goes_to_the_part_that_has_its_names(monkeypatch, seed):
    dims = {"M": random.Random(seed).randint(20, 40), "K": 16, "N": 16}
    kernel = KERNELS["scores"]
    divided_by(monkeypatch, DIVISIONS[kernel](tw.bf16, tw.bf16, **dims))
    schedule = tw.Schedule(tile={"i": 8})
    with pytest.raises(BadInputError, match=r"part 2 of 2: .*not supported by hardware yet"):
        compile_kernel(kernel, named["tiny"], dims=dims, dtype=tw.bf16, schedule=schedule)


@tw.kernel("X[M, N] -> X")
def columns(X):
    for j in tw.each(X.shape[1]):
        tw.store_tile(X[:, j], tw.load_tile(X[:, j]) * 2.0)


@tw.kernel("X[M, N], a[M] -> Y[M, N], a")
def elements(X, a, Y):
    for i in tw.each(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) * tw.load_tile(a[i]))
        tw.store_tile(a[i], tw.load_tile(a[i]) * 2.0)


@pytest.mark.parametrize(
    ("kernel", "cure"),
    [(columns, "transpose the tile, or the tensor"), (elements, r"as `a\[N, 1\]` has")],
    ids=["columns", "elements"],
)
def test_a_point_of_the_last_axis_is_refused_with_a_cure(kernel, cure):
    with pytest.raises(tw.BadInputError, match=rf"side by side in memory: .*{cure}"):
        kernel.compile("small", dtype=tw.bf16, M=10, N=16)


@tw.kernel("X[M, N], v[N] -> Y[M, N], v[N]")
def doubled_after(X, v, Y):
    """Adds a vector to each row, and doubles it then."""
    t = tw.load_tile(v)
    for i in tw.each(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) + t)
    tw.store_tile(v, t * 2.0)


@tw.kernel("X[M, N], v[N], s[N] -> Y[M, N], v[N]")
def scaled_beside(X, v, s, Y):
    """A vector that is updated in place beside a loop over points, which takes another one."""
    u = tw.load_tile(s)
    for i in tw.each(X.shape[0]):
        tw.store_tile(Y[i, :], tw.load_tile(X[i, :]) + u)
    tw.store_tile(v, tw.load_tile(v) * u)


@pytest.mark.parametrize("chip", ["tiny", "small", "large"])
@pytest.mark.parametrize("kernel", [doubled_after, scaled_beside], ids=lambda each: each.name)
def test_what_is_updated_beside_a_loop_over_points_is_updated_once(kernel, chip, seed):
    draw = np.random.default_rng(seed)
    shapes = [(3, 64)] + [(64,)] * (len(kernel.signature.inputs) - 1)
    arrays = [draw.normal(size=each).astype(tw.bf16.dtype) for each in shapes]
    found = kernel.run(*arrays, config=chip, backend="emulator")
    assert found.verified, found.problems
