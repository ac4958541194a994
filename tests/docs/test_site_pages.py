"""Pages as the site reads them: links to modules and examples, lists, navigation."""

import pytest
import yaml

from docs.tools.site import navigation
from docs.tools.site_pages import example_pages, for_site, project_pages
from tests.docs.fences import ROOT


@pytest.mark.parametrize(
    ("page", "link", "to"),
    [
        ("README.md", "docs/run.md#x", "docs/run.md#x"),
        ("README.md", "hw/tma", "reference/hw/tma.html"),
        ("docs/run.md", "../sim/cache.py", "../reference/sim/cache.html"),
        ("docs/guide/why/a.md", "../../../examples/01_matmul.py", "../../../examples/01_matmul.md"),
        ("README.md", "examples", "examples/index.md"),
        ("docs/guide/a.md", "../pictures/attention_map.svg", "../pictures/attention_map.svg"),
        ("README.md", "https://amaranth-lang.org", "https://amaranth-lang.org"),
    ],
)
def test_a_link_leads_to_what_the_site_has(page, link, to):
    assert for_site(f"See [this]({link}).", page) == f"See [this]({to})."


def test_a_link_that_the_site_cannot_follow_is_refused():
    with pytest.raises(ValueError, match=r"Link of README.md must lead to a page.*not Makefile"):
        for_site("[a](Makefile)", "README.md")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("A:\n- b\n- c", "A:\n\n- b\n- c"),
        ("- b\n  more\n- c", "- b\n  more\n- c"),
        ("- b\n  - c\n  - d", "- b\n    - c\n    - d"),
        ("```text\nA:\n- b\n```", "```text\nA:\n- b\n```"),
        ("<!-- generated: x -->\n| a |\n<!-- end of x -->", "\n| a |\n"),
    ],
)
def test_lists_and_markers(text, read):
    assert for_site(text, "README.md") == read


def test_an_example_is_a_page_with_its_source():
    pages = example_pages()
    text = pages["examples/03_softmax.md"]
    assert text.startswith("# Example 3. Softmax of rows") and "```python\nimport" in text
    assert "](01_matmul.md)" in pages["examples/index.md"]


def test_the_navigation_has_every_page_once():
    class Loader(yaml.SafeLoader):
        """Knows the function that makes anchors."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    entries = yaml.load((ROOT / "docs" / "mkdocs.yml").read_text(), Loader)["nav"]
    pages = project_pages() + list(example_pages())

    def listed(entries):
        for entry in entries:
            inside = next(iter(entry.values())) if isinstance(entry, dict) else entry
            yield from listed(inside) if isinstance(inside, list) else [inside]

    found = [name for name in listed(navigation(entries, pages)) if name.endswith(".md")]
    assert sorted(found) == sorted(pages)
