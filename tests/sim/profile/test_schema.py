"""The fields of a profile: what is missing, foreign, cut short or wrong is refused by its name."""

import copy
import json

import pytest

from hw.arch.errors import BadInputError
from sim.profile.schema import PROFILE, check_profile, field_rows, parse_profile
from sw.kernels.matmul import matmul
from tests.profiled_run import profiled


@pytest.fixture(scope="module")
def profile():
    return profiled(matmul, {"M": 8, "N": 8, "K": 16}, backend="emulator")


def test_a_profile_passes_through_json(profile):
    assert parse_profile(json.dumps(profile)) == json.loads(json.dumps(profile))


@pytest.mark.parametrize("name", PROFILE)
def test_a_missing_field_is_named(profile, name):
    other = {key: value for key, value in profile.items() if key != name}
    with pytest.raises(BadInputError, match=rf"\b{name}\b") as caught:
        check_profile(other)
    assert caught.value.where == name


def _changed(profile, path, value):
    other = copy.deepcopy(profile)
    at = other
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return other


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "perfetto", r"format .* must be 'tilewright-profile', not 'perfetto'"),
        (("version",), 1, "version .* must be 2, not 1"),
        (
            ("tokens",),
            [{"source": 0, "sink": -1}],
            r"tokens\[0\].sink .* the number of one of \d+ blocks, not -1",
        ),
        (("cycles",), "many", "Field cycles of a profile must be an integer, not 'many'"),
        (("cycles",), True, "cycles .* must be an integer, not True"),
        (("predicted",), 1, "predicted .* must be a flag, not 1"),
        (("mesh", "rows"), None, "mesh.rows .* must be an integer, not None"),
        (("units", 1, "kind"), 5, r"Field units\[1\].kind of a profile must be a text, not 5"),
        (("units", 0, "states", "busy"), [1.5], r"units\[0\].states.busy\[0\] .* not 1.5"),
        (("units", 0, "states", "busy"), [1], r"units\[0\].states.busy .* a list of \d+ counts"),
        (("units", 0, "causes", 0, "cycles"), 10**9, r"units\[0\].causes .* must be of \d+ cycles"),
        (("blocks", 3), [], r"blocks\[3\] .* must be an object, not \[\]"),
        (("routes", 0, "hops", 0), 7, r"routes\[0\].hops\[0\] .* must be a text, not 7"),
        (("secret",), 7, "secret of a profile must be one of docs/profile.md, not 7"),
    ],
)
def test_a_field_of_another_form_is_named(profile, path, value, message):
    with pytest.raises(BadInputError, match=message):
        check_profile(_changed(profile, path, value))


def test_what_is_no_profile_is_refused(profile):
    text = json.dumps(profile)
    for cut in (1, len(text) // 2, len(text) - 1):
        with pytest.raises(BadInputError, match="Profile must be JSON"):
            parse_profile(text[:cut])
    for other in ("[]", "3", "null", "{}"):
        with pytest.raises(BadInputError, match="of a profile must be"):
            parse_profile(other)


def test_every_field_is_documented():
    rows = list(field_rows())
    assert ["units[].causes[].by", "text"] in [row[:2] for row in rows]
    assert all(about for _, _, about in rows)
