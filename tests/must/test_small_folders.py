"""house-f: no more code than before the change of structure, in folders of few files."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.test_house import PACKAGES
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

ROOT = Path(__file__).resolve().parents[2]
#: Lines of the packages before the change of structure.
LINES_BEFORE = 54_391


@pytest.mark.must("house-f", goal=f"at most {LINES_BEFORE} lines in the packages")
def test_the_packages_have_no_more_lines(figure):
    command = ["git", "ls-files", *PACKAGES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    count = sum((ROOT / name).read_bytes().count(b"\n") for name in done.stdout.split())
    figure(f"{count} lines")
    assert count <= LINES_BEFORE


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
