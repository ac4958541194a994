"""The reference pages of ``make docs``: one for each module, ports as lists, the language."""

import inspect
import re
from html import unescape
from pathlib import Path

import sw.language
from docs.tools.pages import PACKAGES, linked, modules, render

ROOT = Path(__file__).resolve().parents[2]


def module_files():
    """Names of the modules whose files there are."""
    for package in PACKAGES:
        folder = ROOT / package
        files = sorted(folder.rglob("*.py")) if folder.is_dir() else [ROOT / f"{package}.py"]
        for file in files:
            parts = file.relative_to(ROOT).with_suffix("").parts
            if parts[-1] != "__main__":
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def page(name):
    ((_, html),) = render([name])
    return html


def test_every_module_has_a_page():
    assert sorted(module_files()) == list(modules())
    assert len(modules()) > 300


def test_a_package_lists_its_modules_whatever_it_exports():
    for package in ("hw", "sw.prove", "sim.native"):
        listed = set(re.findall(r'<li><a href="[^"]*">(\w+)</a></li>', page(package)))
        inside = {name.rpartition(".")[2] for name in modules() if name.startswith(f"{package}.")}
        direct = {name for name in inside if f"{package}.{name}" in modules()}
        assert direct and direct <= listed, package


def test_the_page_of_the_package_shows_the_language():
    html = page("tilewright")
    for name in sw.language.__all__:
        start = html.find(f'<section id="{name}"')
        assert start > 0, name
        documented = getattr(sw.language, name)
        if inspect.isfunction(documented):
            headline = inspect.getdoc(documented).partition("\n")[0].partition("`")[0]
            text = html[start : html.find("</section>", start)]
            assert headline in unescape(text), name


def test_ports_are_a_list():
    html = page("hw.tma.engine")
    members = html.partition("Members</h6>")[2].partition("Raises</h6>")[0]
    listed = re.findall(r"<li>(?:<p>)?<strong>(\w+)", members)
    assert {"i_descriptor_write", "o_loaded", "axi", "o_error"} <= set(listed)
    assert "Other Parameters" not in html


def test_a_link_to_a_place_that_no_page_has_is_its_text():
    pages = {
        "a/b.html": '<a href="#x">x</a> <a class="c" href="#_y">y</a> <a href="../c.html#z">z</a>'
        ' <a href="../c.html#_w">w</a> <a href="https://x.org/#q">q</a> <p id="x">',
        "c.html": '<p id="z">',
    }
    assert linked(pages)["a/b.html"] == (
        '<a href="#x">x</a> y <a href="../c.html#z">z</a> w <a href="https://x.org/#q">q</a>'
        ' <p id="x">'
    )
