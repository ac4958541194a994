"""house-f: folders of few files, short functions, and few base names that stand twice."""

from collections import Counter
from pathlib import Path

import pytest

from tests.test_sizes import (
    MOST_DOUBLES,
    MOST_FILES,
    MOST_LINES,
    crowded_folders,
    doubled_names,
    function_lines,
    long_functions,
    product_files,
)

# The same rules are tests of tests/test_sizes.py in `make test`.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.must("house-f", goal=f"at most {MOST_FILES} files per folder")
def test_no_folder_is_crowded(figure):
    assert list(crowded_folders(ROOT)) == []
    figure(f"{max(Counter(path.parent for path in product_files(ROOT)).values())} files")


@pytest.mark.must("house-f", goal=f"at most {MOST_DOUBLES} base names stand twice")
def test_few_base_names_stand_twice(figure):
    assert list(doubled_names(ROOT)) == []
    counts = Counter(path.name for path in product_files(ROOT))
    figure(f"{sum(count > 1 for count in counts.values())} names")


@pytest.mark.must("house-f", goal=f"at most {MOST_LINES} lines per function")
def test_no_function_is_long(figure):
    assert list(long_functions(ROOT)) == []
    figure(f"{max(function_lines(ROOT))[0]} lines")
