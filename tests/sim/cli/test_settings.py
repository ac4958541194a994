"""``--set``: what each key means, and how a wrong one is refused."""

import time

import pytest

from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16, fp32
from sim.cli import kernel_options
from sim.cli.settings import problem_of_settings
from sw.ir.format_rules import FORMATS, pred
from sw.kernels.matmul import matmul
from sw.language import Schedule


def problem(*pairs, **options):
    return problem_of_settings(matmul, named["tiny"], bf16, pairs, **options)


def test_the_option_takes_the_formats_that_a_kernel_can_have():
    assert [*kernel_options.FORMATS, pred.name] == list(FORMATS)


def test_sizes_options_format_and_place_seed():
    found = problem(("M", 9), ("MM", 4), ("out", "fp32"), ("place_seed", 3))
    assert dict(found.dims) == {"M": 9, "K": 256, "N": 256}
    assert found.params == {"M": 9, "K": 256, "N": 256, "MM": 4, "NN": 256}
    assert found.outputs[0].format == fp32 and found.place_seed == 3
    assert problem().outputs[0].format == bf16


@pytest.mark.parametrize(
    ("key", "value", "field", "choices"),
    [
        ("row_par", 4, "row_par", {"c": 4}),
        ("col_par", 2, "col_par", {"c": 2}),
        ("row_par.c", 4, "row_par", {"c": 4}),
        ("slots.a_tile", 3, "slots", {"a_tile": 3}),
        ("tile.i", 128, "tile", {"i": 128}),
        ("place.c", "pcu[0, :]", "place", {"c": "pcu[0, :]"}),
        ("slots", 1, "slots", dict.fromkeys(("a_tile", "b_tile", "c", "c_tile"), 1)),
    ],
)
def test_a_key_of_the_schedule(key, value, field, choices):
    assert dict(getattr(problem((key, value)).schedule, field)) == choices


def test_a_named_choice_beats_one_for_all_and_both_beat_the_file():
    file = Schedule(slots={"a_tile": 7, "c_tile": 7}, tile={"i": 16})
    found = problem(("slots.b_tile", 4), ("slots", 2), schedule=file).schedule
    assert dict(found.slots) == {"a_tile": 2, "b_tile": 4, "c": 2, "c_tile": 2}
    assert dict(found.tile) == {"i": 16}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("rowpar", 2)], "unknown key 'rowpar'; did you mean 'row_par'"),
        ([("MN", 2)], "unknown key 'MN'; did you mean"),
        (
            [("zebra", 2)],
            "unknown key 'zebra'; it must be one of M, K, N, MM, NN, out, place_seed, tile",
        ),
        ([("zebra", 2)], "col_par, slots"),
        ([("place.c", 1)], "place.c must be units as text, not 1"),
        ([("row_par.d", 2)], "unknown key 'row_par.d'; did you mean 'row_par.c'"),
        ([("tile.k", 2)], "unknown key 'tile.k'; did you mean 'tile.j' or 'tile.i'"),
        ([("tile", 2)], "tile must name what it is for, tile.i, tile.j, not be alone"),
        ([("M", 3), ("M", 4)], "key 'M' must come once, not as 3 and 4"),
        ([("M", 0)], "M must be an integer of 1 or more, not 0"),
        ([("M", "many")], "M must be an integer of 1 or more, not 'many'"),
        ([("M", 65537)], "M must be an integer from 1 to 65536, not 65537"),
        ([("MM", -3)], "Block size of `metapipe` must be a whole number of 1 or more, not -3"),
        ([("MM", True)], "MM must be an integer, not True"),
        ([("row_par", 0)], "row_par must be an integer of 1 or more, not 0"),
        ([("slots.a_tile", "x")], "slots.a_tile must be an integer of 1 or more, not 'x'"),
        (
            [("place_seed", -1)],
            "place_seed must be an integer from 0 to 9223372036854775807, not -1",
        ),
        ([("out", "fp23")], "unknown format 'fp23'; did you mean 'fp32'"),
        ([("out", "int32")], "`C` is int32 and cannot take a tile of fp32"),
        ([("M", 60000), ("N", 60000)], "Arrays of matmul must take at most 268435456 bytes"),
    ],
)
def test_a_wrong_setting_is_refused_at_once(pairs, message):
    began = time.monotonic()
    with pytest.raises(BadInputError) as caught:
        problem(*pairs)
    assert message in caught.value.message and "\n" not in caught.value.message
    assert caught.value.value is not None or caught.value.kind == "format"
    assert time.monotonic() - began < 2


def test_sizes_of_arrays_stand_unless_a_key_contradicts():
    assert problem(("M", 5), extents={"M": 5, "K": 6, "N": 7}).dims == {"M": 5, "K": 6, "N": 7}
    with pytest.raises(BadInputError, match="K must be 6, the size of the arrays given, not 8"):
        problem(("K", 8), extents={"M": 5, "K": 6, "N": 7})


def test_a_schedule_that_names_nothing_of_the_program_is_refused():
    with pytest.raises(BadInputError, match="Schedule.tile has `kk`"):
        problem(schedule=Schedule(tile={"kk": 3}))
