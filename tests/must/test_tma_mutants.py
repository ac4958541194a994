"""tma-a: a fault of multicast, copies, remote operations or reductions is found at random."""

import pytest

from tests.must.mutants import Mutant, require_killed

_TEST = "tests/hw/tma/campaign/test_wider_commands.py"
_PADS = "hw/tma/scratchpads"

#: By what they are.
MUTANTS = {
    "a load waits for the first scratchpad alone": Mutant(
        f"{_PADS}/local_memories.py",
        "given.ready.eq(~busy.any())",
        "given.ready.eq(~busy[0])",
        _TEST,
    ),
    "a copy takes the word of another scratchpad": Mutant(
        f"{_PADS}/local_memories.py",
        "_selected(last, [",
        "_selected(pads, [",
        _TEST,
    ),
    "a remote operation is lost": Mutant(
        f"{_PADS}/operation_router.py",
        "self.i_operations[each].ready.eq(target.ready)",
        "self.i_operations[each].ready.eq(1)",
        _TEST,
    ),
    "a bank counts a load twice": Mutant(
        f"{_PADS}/barrier_fan.py",
        "self.i_pads[number] & ~taken[number]),",
        "self.i_pads[number]),",
        _TEST,
    ),
    "a reduction does not wait for stores before it": Mutant(
        "hw/tma/reduction/burst_reducer.py",
        " & (unanswered == 0)",
        "",
        _TEST,
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("tma-a", goal="random commands find a fault of each mode of several scratchpads")
@pytest.mark.parametrize("fault", MUTANTS)
def test_random_commands_find_the_fault(fault, copy):
    require_killed(MUTANTS[fault], copy)
