"""see-a: bottlenecks of five kinds, which a run without them shows to be ones, are named first."""

import pytest

from tests.planted_bottlenecks import names_it, profile_of_planted, speedup
from tests.planted_lists import FIRST, FOURTH, SECOND, THIRD

#: Least speedup by which what is planted is a bottleneck.
_LEAST = 1.1


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("see-a", goal="planted bottlenecks are named first: ≥ 9 of 10")
@pytest.mark.parametrize(
    "cases", [FIRST, SECOND, THIRD, FOURTH], ids=["first", "second", "third", "fourth"]
)
def test_what_was_planted_is_named_first(cases, heavy, figure):
    named = {}
    for name, case in cases.items():
        assert speedup(case) >= _LEAST, name
        named[name] = names_it(profile_of_planted(case), case)
    found = sum(named.values())
    figure(f"{found} of {len(named)} named first")
    assert len(named) == 10
    assert found >= 9, [name for name, right in named.items() if not right]
