"""Formats of the language: those of the machine, and which of them are served."""

import numpy as np
import pytest

import sw.language as tw
from hw.arch.errors import BadInputError
from hw.numeric import formats
from sw.ir.format_rules import FORMATS, format_of, pred, rounded


def test_names_of_the_language_are_the_formats_of_the_machine():
    for name in ("bf16", "fp16", "e4m3", "e5m2", "int8", "fp32", "int32"):
        assert getattr(tw, name) is formats.named[name]


@pytest.mark.parametrize("format_", [each for each in FORMATS.values() if each != pred])
def test_a_served_format_has_a_name_and_a_numpy_type(format_):
    for given in (format_, format_.name, format_.dtype, format_.dtype.name, format_.dtype.type):
        assert format_of(given) is format_
    assert format_of(pred) is pred


@pytest.mark.parametrize("name", sorted(formats.named.keys() - FORMATS.keys()))
def test_any_use_of_another_format_of_the_machine_is_refused_by_its_name(name):
    format_ = formats.named[name]
    # A microscaled format has the numpy type of its elements.
    types = () if format_.has_scale else (format_.dtype,)
    for given in (format_, name, *types):
        with pytest.raises(BadInputError, match=f"not {name}, which is not supported yet"):
            format_of(given)


def test_fp32_is_rounded_to_the_format_of_inputs_or_to_bf16_for_8_bits():
    found = {name: rounded(each).name for name, each in FORMATS.items() if each.is_float}
    own = {name: name for name in ("bf16", "fp16", "fp32")}
    assert found == own | {"e4m3": "bf16", "e5m2": "bf16"}


@pytest.mark.parametrize(
    "given",
    [None, "pred", "bool", np.bool_, np.float64, "fp31", 3, object()],
)
def test_what_is_no_format_is_refused(given):
    served = "bf16, fp16, int8, e4m3, e5m2, fp32, int32"
    with pytest.raises(BadInputError, match=f"^Format must be one of {served}, not "):
        format_of(given)
