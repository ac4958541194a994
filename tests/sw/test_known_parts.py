"""Images that other values of a kernel's options use again."""

import dataclasses

import pytest

import tilewright as tw
from hw.arch.errors import BadInputError
from sw import known_parts
from sw.parts.launch_checks import LaunchOrderError


@tw.kernel("A[M, K], B[K, N], T[S, N] -> T, Y[M, N]")
def appended(A, B, T, Y, first=0, gain=2.0):
    """Rows of a product are stored in a table, and their squares, scaled, elsewhere."""
    rows = A.shape[0]
    tw.store_tile(T[first : first + rows, :], tw.load_tile(A) @ tw.load_tile(B))
    t = tw.load_tile(T[first : first + rows, :])
    tw.store_tile(Y, t * t * gain)


SIZES = {"M": 8, "K": 16, "N": 16, "S": 40}


@pytest.fixture(scope="module")
def program():
    return appended.compile("tiny", **SIZES, dtype=tw.bf16)


def test_parts_with_other_places_keep_their_images(program):
    other = program.with_options(first=11)
    assert len(other.images) > 1
    assert all(one is two for one, two in zip(program.images, other.images, strict=True))
    fresh = appended.compile("tiny", **SIZES, first=11, dtype=tw.bf16)
    assert fresh.images == other.images and fresh.predicted_cycles == other.predicted_cycles
    assert other.ir("divide") == fresh.ir("divide") != program.ir("divide")


def test_parts_with_another_program_are_compiled(program):
    other = program.with_options(gain=3.0)
    kept = [one is two for one, two in zip(program.images, other.images, strict=True)]
    assert kept.count(False) == 1 and kept.count(True) >= 1
    assert other.images == appended.compile("tiny", **SIZES, gain=3.0, dtype=tw.bf16).images


def test_options_add_up(program):
    both = program.with_options(gain=3.0).with_options(first=4)
    assert "'first': 4" in repr(both) and "'gain': 3.0" in repr(both)


def test_an_image_whose_accesses_would_have_no_order_is_not_used(program, monkeypatch):
    def refused(*_):
        raise LaunchOrderError("Loads and stores must have an order")

    monkeypatch.setattr(known_parts, "require_order", refused)
    other = program.with_options(first=3)
    assert not any(one is two for one, two in zip(program.images, other.images, strict=True))


def test_predictions_are_those_of_the_new_places(program):
    (part, *_) = program.with_options(first=5)._compiled.parts
    first = program._compiled.parts[0]
    assert part._predictions is not first._predictions and part.part != first.part
    assert dataclasses.replace(part, part=first.part, _predictions=first._predictions) == first


def test_an_unknown_option_is_refused(program):
    with pytest.raises(BadInputError, match="past"):
        program.with_options(past=3)
