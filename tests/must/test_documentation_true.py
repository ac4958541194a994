"""edge-f: the documentation is whole and true."""

import re
from pathlib import Path

import pytest

from docs.tools.blocks import blocks
from docs.tools.figures import ROOT, figures
from docs.tools.generated import GENERATED
from docs.tools.pages import modules, write
from tests.docs.fences import fences, run_python, run_python_here, run_shell
from tests.docs.test_examples import quick

_RUNS = "every Python and shell block runs as it stands"
_FIGURES = "every number with a unit in a block or in the table, exact ones computed again"


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must("edge-f", goal=_FIGURES)
@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_block_is_what_the_code_makes(name, heavy, figure):
    block = GENERATED[name]
    made = block.make()
    assert blocks(text_of(block.page))[name] == made, "run make figures"
    figure(f"{block.page}: {made.count(chr(10)) - 2} rows of {name} as made now")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must("edge-f", goal=_FIGURES)
def test_exact_figures_of_the_prose_are_computed_again(heavy, figure):
    exact = [entry for entry in figures() if entry.values]
    wrong = [
        (entry.page, stated, entry.expected)
        for entry in exact
        if (stated := set(entry.stated(text_of(entry.page)))) != {entry.expected}
    ]
    assert wrong == [], "run make figures"
    count = sum(len(entry.expected) for entry in exact)
    figure(f"{count} figures in {len(exact)} of {len(figures())} entries computed again")


@pytest.mark.slow
@pytest.mark.must("edge-f", goal="pages >= modules")
def test_make_docs_writes_a_page_for_each_module(tmp_path, figure):
    count = write(tmp_path)
    pages = {file.relative_to(tmp_path) for file in tmp_path.rglob("*.html")}
    assert {Path(*name.split(".")).with_suffix(".html") for name in modules()} <= pages
    assert Path("index.html") in pages and (tmp_path / "search.js").exists()
    for file in pages:
        text = (tmp_path / file).read_text()
        # Ports that are no list are one paragraph.
        assert not re.search(r"Members</h6>\s*<p>", text), file
    figure(f"{len(pages)} pages for {count} modules")


@pytest.mark.must("edge-f", goal=_RUNS)
@pytest.mark.parametrize("fence", [each for each in fences("python") if quick(each)], ids=str)
def test_quick_python_of_a_page_runs(fence, tmp_path, figure):
    run_python_here(fence, tmp_path)
    figure(f"{len(fences('python'))} blocks of Python")


@pytest.mark.slow
@pytest.mark.must("edge-f", goal=_RUNS)
@pytest.mark.parametrize("fence", [each for each in fences("python") if not quick(each)], ids=str)
def test_python_that_takes_longer_runs(fence, tmp_path, heavy):
    run_python(fence, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.must("edge-f", goal=_RUNS)
@pytest.mark.parametrize(
    "fence", [each for each in fences("sh") if each.page.name != "README.md"], ids=str
)
def test_shell_of_a_page_runs(fence, tmp_path, heavy, figure):
    """The README's commands run one by one for slice-k."""
    run_shell(fence, tmp_path)
    figure(f"{len(fences('sh'))} blocks of shell, the README's by slice-k")
