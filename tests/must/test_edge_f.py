"""edge-f: the documentation is whole and true."""

import re
from pathlib import Path

import pytest

from docs.tools.pages import modules, write


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
