"""Names of modules: equal exactly if class and parameters are."""

import dataclasses
import enum
import random
import re

import pytest
from amaranth.hdl import Module
from amaranth.lib import data

from gen.verilog import emit
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.arch.unit_kind import PCU, PMU
from hw.chip import Chip
from hw.emit.shared import Library
from hw.lib.component import Component
from hw.lib.fifo import Queue
from hw.numeric.formats import named as formats
from hw.tile import Tile
from sim.components import COMPONENTS


class _Kind(enum.Enum):
    PLAIN = 1
    IN_TWO = 2


@dataclasses.dataclass(frozen=True)
class _Inner:
    rows: int
    kind: _Kind
    formats: tuple


class Part(Component):
    def __init__(self, name, config, *, marks, depth=3, shape=None):
        super().__init__({})

    def elaborate(self, platform):
        return Module()


_SHAPES = ({"a": 8, "b": 4}, {"b": 4, "a": 8}, {"a": 12})


def _parameters(rng):
    """Random parameters, of few values each, so that two draws are often equal."""
    every = sorted(formats.values(), key=lambda fmt: fmt.name)
    rows = rng.choice([rng.randint(-2, 12), rng.randint(0, 1 << 200)])
    shape = rng.choice([None, *_SHAPES])
    return {
        "name": rng.choice(["a", "b", "a_b", "b_a", "a_", "_", "A", "a-b", "ü"]),
        "config": _Inner(
            rows, rng.choice(list(_Kind)), tuple(rng.choices(every, k=rng.randint(0, 3)))
        ),
        "marks": tuple(rng.choices([False, True], k=rng.randint(0, 3))),
        "depth": rng.randint(0, 12),
        "shape": shape and data.StructLayout(shape),
    }


def test_names_are_equal_exactly_if_the_parameters_are(seed):
    rng = random.Random(seed)
    for _ in range(2000):
        one, other = _parameters(rng), _parameters(rng)
        # The other differs in some parameters alone, or in none.
        other = {key: rng.choice([value, other[key]]) for key, value in one.items()}
        names = []
        for parameters in (one, other):
            part = Part(**parameters)
            part.__dict__["_MustUse__used"] = True
            names.append(part.definition_name)
            assert re.fullmatch(r"part_\w+", part.definition_name, re.ASCII)
            assert len(part.definition_name) < 160
        # Some values are equal that are not of the same type; none such are drawn.
        assert (names[0] == names[1]) == (one == other), (one, other)


def test_texts_of_a_tuple_are_told_apart():
    inner = _Inner(4, _Kind.PLAIN, (formats["bf16"],))
    parts = [Part("a", inner, marks=marks) for marks in (("a_b",), ("a", "b"), ((1, 2),), (1, 2))]
    for part in parts:
        part.__dict__["_MustUse__used"] = True
    assert len({part.definition_name for part in parts}) == len(parts)


def test_defaults_and_positions_do_not_change_a_name():
    inner = _Inner(4, _Kind.IN_TWO, (formats["bf16"],))
    parts = [
        Part("a", inner, marks=()),
        Part(name="a", config=inner, marks=(), depth=3, shape=None),
    ]
    for part in parts:
        part.__dict__["_MustUse__used"] = True
        assert part.definition_name == "part_a_r4_ccb82fe69_bf16_m2e38e77b_d3_none"


class Pair(Component):
    def __init__(self, first, second):
        super().__init__({})

    def elaborate(self, platform):
        return Module()


def test_two_values_of_several_words_do_not_run_into_one_another():
    words = ("a", "b", "c")
    tuples = [(words[:cut], words[cut:]) for cut in range(4)]
    texts = [("a_b", "c"), ("a", "b_c")]
    for calls in (tuples, texts):
        pairs = [Pair(*call) for call in calls]
        for pair in pairs:
            pair.__dict__["_MustUse__used"] = True
        assert len({pair.definition_name for pair in pairs}) == len(calls)


def test_a_value_that_cannot_name_a_module_is_refused():
    part = Part("a", 1.5, marks=())
    part.__dict__["_MustUse__used"] = True
    with pytest.raises(BadInputError, match="can name a module, not 1.5"):
        _ = part.definition_name


class _Recorder(Library):
    """Library that also notes class and parameters of every component by its name."""

    def __init__(self):
        super().__init__()
        self.noted = {}

    def define(self, component):
        made = type(component), repr(component.parameters)
        self.noted.setdefault(component.definition_name, set()).add(made)
        return super().define(component)


#: A chip; and units whose parts, or like ones, are in others, too.
_SLOW = {"tiny", "tma_unit", "tma_top"}


@pytest.mark.few(10)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=[pytest.mark.slow] * (each in _SLOW))
        for each in ("tiny", *COMPONENTS)
    ],
)
def test_every_component_of_a_design_is_told_apart(name):
    chip = named["tiny"]
    entry = COMPONENTS.get(name)
    library = _Recorder()
    library.define(entry.build(chip, entry.values(chip, [])) if entry else Chip(chip))
    made = [each for found in library.noted.values() for each in found]
    assert len(made) == len(set(made)) == len(library.noted)


def test_a_tile_is_named_by_all_that_it_depends_on():
    chip = named["small"]

    def name(kind, config):
        tile = Tile(kind, config.of_tile(kind))
        tile.__dict__["_MustUse__used"] = True
        return tile.definition_name

    pmu = dataclasses.replace(chip.pmu, slots=4)
    names = {
        name(kind, changed)
        for kind in (PCU, PMU)
        for changed in (
            chip,
            dataclasses.replace(chip, tracks=4),
            dataclasses.replace(chip, token_tracks=3),
            dataclasses.replace(chip, width_bits=128),
        )
    }
    assert len(names) == 8
    assert name(PMU, dataclasses.replace(chip, pmu=pmu)) not in names
    # A chip of another size, or with other units of the other kind, has the same tiles.
    assert {name(PCU, dataclasses.replace(chip, pmu=pmu)), name(PMU, named["large"])} <= names


def test_a_name_is_the_same_in_every_process():
    queue = Queue(data.StructLayout({"a": 8, "b": 4}), depth=2)
    assert emit(queue).top == "queue_p12_d2"
