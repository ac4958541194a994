"""Options from Python: each is checked as the command line's is, by one class of error."""

import argparse
import pathlib

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from sim.cli.commands.run import add
from sim.rules import OPTIONS, option_rule
from sw.kernels.matmul import matmul

A = np.ones((3, 4), np.int8)
B = np.ones((4, 2), np.int8)
SIZES = {"M": 3, "K": 4, "N": 2, "dtype": tw.int8}


def ran(**options):
    return matmul.run(A, B, **{"config": "tiny", "backend": "golden"} | options)


def compiled(**options):
    return matmul.compile(**{"config": "tiny"} | SIZES | options)


@pytest.fixture(scope="module")
def program():
    return compiled()


WRONG = [1.5, "x", [3], {}, object(), np.nan, np.array([1, 2]), True, -1]
HUGE = [10**30, 10**5000]
NUMBER = [*WRONG, None, *HUGE]
TRUTH = [1, 0, "true", None, [], np.array([True, False])]
SIZE = [*NUMBER, 0]
#: Values that each option of a run refuses.
RUN = {
    "seed": NUMBER,
    "latency": SIZE,
    "jitter": NUMBER,
    "stall": ["0.1", None, [0.1], True, -0.1, 1.0, np.nan, np.inf, 1j],
    "error": ["read", 3, ("read", 1, "slverr"), [None], [tw.ErrorAt("read", 0, "slverr")] * 4],
    "warm": TRUTH,
    "use_cache": TRUTH,
    "max_cycles": [*WRONG, 0],
    "design": ["chip.v", 3, {}],
    "waves": ["", "a.fst", "a", "a\0.vcd", "/dev/null/a.vcd", 3, b"waves", [], True],
    "backend": ["rlt", None, 3, [], ""],
    "progress": TRUTH,
}
#: Values that each option of the compiler refuses.
COMPILE = {
    "config": [None, 3, "", "tinny", "x" * 300, "a\0.toml", [], {}, True, b"tiny"],
    "schedule": ["x", 3, [], {"row_par": {"c": 1}}, False],
    "out": ["fp23", 3, float, "pred", "e2m1", {"D": tw.bf16}, {"C": 3}, object(), []],
    "place_seed": NUMBER,
    "MM": ["x", None, 1.5, True, [], -1, 0],
}
SIZED = {
    "M": SIZE,
    "dtype": ["fp23", 3, {"C": tw.bf16}, {"A": 3}, [], None, np.complex64],
}


def cases(table):
    return [
        pytest.param(name, value, id=f"{name}-{number}")
        for name, values in table.items()
        for number, value in enumerate(values)
    ]


def refused(option, act):
    """The one line of a refusal, which names the option, the rule and the value."""
    with pytest.raises(tw.BadInputError) as caught:
        act()
    error = caught.value
    assert isinstance(error, ValueError) and error.code == 2
    # A rule of the language has the line below it, and speaks of what the option sets.
    said = error.message
    assert "\n" not in said and len(said) < 400 and "None:" not in said
    named = (option, {"MM": "Block size"}.get(option, option))
    assert option == error.where or any(name in said for name in named), said
    assert error.where or error.kind in ("argument", "format"), said
    return said


@pytest.mark.parametrize(("option", "value"), cases(RUN | COMPILE))
def test_run_refuses_a_wrong_value(option, value):
    names = {"config": ""}
    refused(names.get(option, option), lambda: ran(**{option: value}))


@pytest.mark.parametrize(("option", "value"), cases(COMPILE | SIZED))
def test_compile_refuses_a_wrong_value(option, value):
    names = {"config": ""}
    if option == "dtype" and value is None:
        names["dtype"] = "Input `A` of `matmul` must have a format: give `dtype`"
    refused(names.get(option, option), lambda: compiled(**{option: value}))


@pytest.mark.parametrize(("option", "value"), cases(RUN))
def test_a_compiled_kernel_refuses_a_wrong_value(option, value, program):
    refused(option, lambda: program.run(A, B, **{"backend": "golden", option: value}))


@pytest.mark.parametrize("value", COMPILE["MM"])
def test_a_call_refuses_a_wrong_value(value):
    refused("MM", lambda: matmul(A, B, MM=value))


@pytest.mark.parametrize("field", ["tile", "row_par", "col_par", "sum_par", "slots", "place"])
@pytest.mark.parametrize("value", ["x", 3, [], {"c": None}, {"c": -1}, {"c": 1.5}, {3: 1}])
def test_a_schedule_refuses_a_wrong_value(field, value):
    assert "Schedule." in refused(field, lambda: tw.Schedule(**{field: value}))


@pytest.mark.parametrize("text", [3, None, b"{}", "", "[]", "3", '{"tile": 3}', '{"tiles": {}}'])
def test_a_schedule_of_text_refuses_what_is_none(text):
    refused("Schedule", lambda: tw.Schedule.from_json(text))


@pytest.mark.parametrize(
    "values",
    [("reed", 1, "slverr"), (3, 1, "slverr"), ([], 1, "slverr"), ("read", "x", "slverr")]
    + [("read", 1.5, "slverr"), ("read", -1, "slverr"), ("read", 1, "okay"), ("read", 1, None)],
)
def test_an_error_of_memory_refuses_a_wrong_value(values):
    refused("Error ", lambda: tw.ErrorAt(*values))


@pytest.mark.parametrize("array", [[[1, 2], [3]], None, "x", {}, 3, [[1j]], object()])
def test_what_is_no_array_is_refused(array, program):
    for act in (matmul, ran_on, program.run):
        with pytest.raises(tw.BadInputError, match="`matmul` (cannot take|takes) `A`"):
            act(array, B)


def ran_on(*arrays):
    return matmul.run(*arrays, config="tiny", backend="golden")


def test_what_is_no_kernel_is_refused():
    for signature in (lambda A: None, 3, None):
        with pytest.raises(tw.BadInputError, match=r"Signature must be text, as in `@tw.kernel"):
            tw.kernel(signature)
    with pytest.raises(tw.BadInputError, match="Kernel must be a function, not int"):
        tw.kernel("A[M] -> B[M]")(3)


def test_a_pass_that_is_none_is_refused(program):
    for after in (3, None, [], "traces"):
        refused("Pass", lambda after=after: program.ir(after))


def test_numbers_of_numpy_and_paths_are_taken(tmp_path, program, capsys):
    plain = ran(seed=3, MM=2, place_seed=5, schedule=tw.Schedule(slots={"a_tile": 2})).json()
    numpy = ran(
        seed=np.int64(3),
        MM=np.uint8(2),
        place_seed=np.int32(5),
        latency=np.int16(100),
        jitter=np.int64(0),
        stall=np.float32(0.25),
        use_cache=np.True_,
        progress=np.False_,
        warm=np.False_,
        error=None,
        schedule=tw.Schedule(slots={"a_tile": np.int64(2)}),
    ).json()
    seconds = [name for name in plain if name.endswith("_seconds")]
    assert [name for name in plain if plain[name] != numpy[name] and name not in seconds] == []
    sizes = {name: np.int64(SIZES[name]) for name in "MKN"}
    assert compiled(**sizes).image == program.image
    file = tmp_path / "mine.toml"
    capsys.readouterr()
    tw.main(["config", "tiny", "--toml"])
    file.write_text(capsys.readouterr().out)
    for config in (file, str(file), named["tiny"], pathlib.Path("tiny")):
        assert compiled(config=config).image == program.image
        assert ran(config=config).verified
    assert compiled(dtype={"A": tw.int8, "B": "int8"}).image == program.image
    assert ran(out={"C": "int32"}).out_dtype == ran(out=np.int32).out_dtype == "int32"


def test_the_command_has_the_bounds_of_the_same_table():
    subparsers = argparse.ArgumentParser().add_subparsers()
    add(subparsers)
    parse = subparsers.choices["run"].parse_args
    for option in ("latency", "jitter", "seed"):
        rule = OPTIONS[option]
        for value in (rule.low, rule.high):
            given = parse(["matmul", f"--{option}", str(value)])
            assert getattr(given, option) == value
            for wrong in (rule.low - 1, rule.high + 1):
                with pytest.raises(SystemExit):
                    parse(["matmul", f"--{option}={wrong}"])


def test_an_option_of_a_kernel_has_the_type_of_its_default():
    assert option_rule(1).check("x", np.int8(-3)) == -3
    assert option_rule(1.5).check("x", 2) == 2.0
    assert option_rule("a").check("x", "b") == "b"
    assert option_rule(None).check("x", "b") == "b"
    for default, value in ((1, 1.0), (1, True), (1.5, "2"), ("a", 1), (True, 1)):
        with pytest.raises(tw.BadInputError, match="^x must be "):
            option_rule(default).check("x", value)
