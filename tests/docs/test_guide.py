"""The guide: its order, its blocks, what following it finds, and its pictures."""

import re

import pytest

from docs.tools.gallery import COMMITTED, PICTURES, commands, draw
from docs.tools.walkthrough import blocks_of, corrected, fits, rewritten, walk
from tests.docs.fences import GUIDE, ROOT

TUTORIAL = [page for page in GUIDE if page.parent.name == "tutorial"]
LEAST = {"tutorial": 10, "howto": 10, "why": 7}


def test_the_guide_has_its_pages():
    for folder, count in LEAST.items():
        assert len([page for page in GUIDE if page.parent.name == folder]) >= count


def test_the_steps_are_in_order_and_each_names_the_next():
    for number, page in enumerate(TUTORIAL, 1):
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {number}. ") and page.name.startswith(f"{number:02}_")
        if page != TUTORIAL[-1]:
            assert f"]({TUTORIAL[number].name})" in text, page.name


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_every_block_runs_or_is_the_output_of_one(page):
    blocks = blocks_of(page)
    fences = re.findall(r"^```\w", page.read_text(encoding="utf-8"), re.MULTILINE)
    outputs = [block for block in blocks if block.output]
    here = [block for block in blocks if block.page == page]
    assert len(fences) == len(here) + len(outputs)
    if page.parent.name in ("tutorial", "howto"):
        assert outputs, "a page shows what a command says"


PAGE = """# A page

```python title="mine.py"
SIDE = 7
```

```sh
export GREETING=hello
cd /
```

Later:

```sh
echo "$GREETING"; echo noise; echo "5 cycles"
```

```text
hello
...
{}
```

```python
from mine import SIDE
print(SIDE)
```
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def followed(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    return walk([page], tmp_path / "here", tmp_path)


def test_a_page_is_one_session(tmp_path, folder):
    done = followed(tmp_path, PAGE.format("5 cycles"))
    assert done.error == "" and done.wrong == []
    assert [output.split() for _, output in done.outputs][-2:] == [
        ["hello", "noise", "5", "cycles"],
        ["7"],
    ]
    assert (folder / "mine.py").read_text() == "SIDE = 7\n"


def test_another_output_is_found(tmp_path, folder):
    done = followed(tmp_path, PAGE.format("6 cycles"))
    ((block, output),) = done.wrong
    assert corrected(block.output.text, output) == "hello\n...\n5 cycles\n"


@pytest.mark.parametrize(
    "text", ["```sh\necho a; false\n```\n", "```python\nraise ValueError('a')\n```\n"]
)
def test_a_block_that_fails_is_named(text, tmp_path, folder):
    done = followed(tmp_path, f"{text}\n```sh\ntouch later\n```\n")
    assert "page.md" in done.error and not (folder / "later").exists()


def test_files_of_an_earlier_page_are_saved(tmp_path, folder):
    (tmp_path / "first.md").write_text('```python title="a.py"\nA = 1\n```\n\n```sh\nfalse\n```\n')
    done = followed(tmp_path, "<!-- files of: first.md -->\n\n```python\nfrom a import A\n```\n")
    assert done.error == ""


def test_an_output_of_nothing_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```sh\ntrue\n```\n\nWords.\n\n```text\nx\n```\n")
    with pytest.raises(ValueError, match="must follow a block that runs"):
        blocks_of(page)
    page.write_text("```console\n$ true\n```\n")
    with pytest.raises(ValueError, match="must be sh, python or text, not console"):
        blocks_of(page)


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a\nb\n", "a\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("...\nc\n", "a\nc\nb\nc\n", True),
        ("...\nc\n", "a\nc\nb\n", False),
        ("a\n...\nc\n", "b\na\nc\n", False),
        ("...\n", "", True),
        ("1 a\n", "2 a\n", False),
    ],
)
def test_lines_left_out(expected, output, same):
    assert fits(expected, output) is same


def test_a_page_is_rewritten_with_what_its_blocks_say(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```sh\necho 12; echo x\n```\n\n```text\n11\n...\n```\n\n```sh\nls\n```\n")
    assert rewritten(page) == page.read_text().replace("11", "12")
    page.write_text("```sh\nfalse\n```\n")
    with pytest.raises(ValueError, match=r"Every block of page.md must run"):
        rewritten(page)


def test_a_picture_follows_the_command_that_draws_it(tmp_path):
    shown = re.findall(r"\.\./pictures/([\w.]+)\)", (ROOT / "docs/guide/gallery.md").read_text())
    assert list(commands()) == shown and set(COMMITTED) < set(shown)
    with pytest.raises(ValueError, match="Picture a.svg must follow a command"):
        commands("```sh\nls\n```\n\n![a](../pictures/a.svg)\n")


def test_pictures_in_the_project_are_those_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    there = {file.name for file in (ROOT / PICTURES).iterdir()}
    assert there == set(COMMITTED)
    assert f"{PICTURES}/attention_profile.svg" in readme


def test_the_map_of_attention_is_what_the_code_draws(tmp_path):
    """The quick one; tests/must/test_guide_followed.py draws all."""
    (drawn,) = draw(tmp_path, ["attention_map.svg"]).values()
    assert drawn.read_bytes() == (ROOT / PICTURES / drawn.name).read_bytes(), "run make figures"
