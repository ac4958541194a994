"""Planted faults of the must-show tests stand where they are planted: their own runs are long."""

import pytest

from tests.must import test_attention_faults, test_mutants_killed, test_vector_faults_caught
from tests.must.mutants import ROOT

_PLANTED = {
    **test_attention_faults.FAULTS,
    **test_mutants_killed.MUTANTS,
    **test_vector_faults_caught.FAULTS,
}


@pytest.mark.parametrize("name", _PLANTED)
def test_the_text_of_an_edit_stands_once(name):
    planted = _PLANTED[name]
    assert (ROOT / planted.path).read_text().count(planted.before) == 1
    assert (ROOT / planted.test.split("::")[0]).is_file()
