"""Schedules: frozen data, JSON and back, names checked against the program."""

import re

import pytest

import sw.language as tw
from sw.kernels.matmul import matmul
from sw.language.schedule import schedule_names


def schedule():
    return tw.Schedule(
        tile={"i": 256, "j": 64}, row_par={"c": 4}, slots={"a_tile": 2}, place={"c": "pcu[0, :]"}
    )


def test_a_schedule_survives_json():
    found = tw.Schedule.from_json(schedule().to_json())
    assert found == schedule()
    assert hash(found) == hash(schedule())
    assert found.to_json() == schedule().to_json()
    assert found != tw.Schedule(tile={"i": 256})
    assert tw.Schedule.from_json('{"tile": {"i": 8}}') == tw.Schedule(tile={"i": 8})
    assert repr(found).startswith("Schedule(tile={'i': 256, 'j': 64}, row_par={'c': 4}, ")


def test_a_schedule_is_frozen():
    found = schedule()
    with pytest.raises(AttributeError):
        found.tile = {}
    with pytest.raises(TypeError):
        found.tile["i"] = 1


def test_the_right_one_of_two_schedules_wins():
    both = schedule() | tw.Schedule(tile={"j": 32}, col_par={"c": 2})
    assert dict(both.tile) == {"i": 256, "j": 32}
    assert dict(both.row_par) == {"c": 4}
    assert dict(both.col_par) == {"c": 2}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tile": {"i": 0}}, "Schedule.tile of `i` must be a whole number of 1 or more, not 0"),
        ({"tile": {"i": 2.5}}, "Schedule.tile of `i` must be .* not 2.5"),
        ({"slots": {"a": True}}, "Schedule.slots of `a` must be .* not True"),
        ({"place": {"c": 3}}, "Schedule.place of `c` must be text, not 3"),
    ],
)
def test_wrong_numbers_are_refused_where_the_schedule_is_made(given, message):
    with pytest.raises(tw.ProgramError, match=message) as caught:
        tw.Schedule(**given)
    assert caught.value.where.startswith("test_schedule.py:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Schedule must be JSON: "),
        ("[1]", r"Schedule must be a JSON object, not \[1\]"),
        ('{"tiles": {}}', "Schedule has `tiles`; keys are tile, row_par, .*did you mean 'tile'"),
        ('{"tile": 3}', "Schedule.tile must be an object, not 3"),
    ],
)
def test_wrong_json_is_refused(text, message):
    with pytest.raises(tw.ProgramError, match=message):
        tw.Schedule.from_json(text)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tile": {"ii": 4}}, "Schedule.tile has `ii`; loops of matmul are i, j"),
        ({"row_par": {"a_tile": 4}}, "Schedule.row_par has `a_tile`; products of matmul are c"),
        ({"place": {"cc": "pcu"}}, "Schedule.place has `cc`; products of matmul are c"),
        (
            {"slots": {"b_tiles": 2}},
            "Schedule.slots has `b_tiles`; tiles of matmul are a_tile, b_tile, c, c_tile; "
            "did you mean 'b_tile'",
        ),
    ],
)
def test_unknown_names_are_refused_with_the_near_misses(given, message):
    program = matmul.trace(M=8, K=8, N=8, dtype=tw.bf16)
    wrong = tw.Schedule(**given)
    with pytest.raises(tw.ProgramError, match=re.escape(message)[:60]) as caught:
        tw.check_schedule(wrong, program)
    assert message in caught.value.message
    assert caught.value.kind == "schedule"
    tw.check_schedule(schedule(), program)


def test_all_loops_of_one_name_answer_to_it_and_a_carried_sum_is_one_product():
    def twice(A, B, C):
        acc = tw.zeros(8, 8)
        for k in tw.metapipe(8, 4):
            acc += tw.load_tile(A[:, k]) @ tw.load_tile(B[k, :])
        for k in tw.metapipe(8, 4):
            acc += tw.load_tile(A[:, k]) @ tw.load_tile(B[k, :])
        tw.store_tile(C, acc)

    program = tw.kernel("A[M, M], B[M, M] -> C[M, M]")(twice).trace(M=8, dtype=tw.bf16)
    tw.check_schedule(tw.Schedule(tile={"k": 2}, row_par={"acc": 2}), program)


def test_the_names_a_schedule_may_use_are_listed_for_each_field():
    names = schedule_names(matmul.trace(M=8, K=8, N=8, dtype=tw.bf16))
    assert names["tile"] == ("i", "j")
    assert names["row_par"] == names["col_par"] == names["sum_par"] == names["place"] == ("c",)
    assert names["slots"] == ("a_tile", "b_tile", "c", "c_tile")
