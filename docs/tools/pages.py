"""Reference pages of every module, made from the docstrings by pdoc.

pdoc follows `__all__` down into packages, so a package that names its own members would hide its
modules; and of numpydoc's sections it knows `Attributes` as a list of names, but not `Members`,
the ports of a component. Both are set right here.
"""

from __future__ import annotations

import contextlib
import functools
import html
import importlib
import pkgutil
import posixpath
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import jinja2
import pdoc.doc
import pdoc.render
import pdoc.render_helpers

__all__ = ["PACKAGES", "linked", "modules", "render", "write"]

#: What the reference covers.
PACKAGES = ("hw", "gen", "sw", "sim", "tilewright")

# Rendered as a list like `Attributes`, and used by no docstring of ours.
_LISTED = "Other Parameters"
_PLACE = re.compile(r' id="([^"]+)"')
_LINK = re.compile(
    r'<a [^>]*?href="(?P<file>[^"#:]*)#(?P<place>[^"]+)"[^>]*>(?P<text>.*?)</a>', re.S
)
_MEMBERS = re.compile(r"^([ \t]*)Members\n[ \t]*-+$", re.MULTILINE)


class _Module(pdoc.doc.Module):
    """Module whose submodules are all there are, whatever `__all__` names."""

    @functools.cached_property
    def submodules(self) -> list[pdoc.doc.Module]:
        """Modules of the package, by name."""
        names = (name for name in modules() if name.rpartition(".")[0] == self.fullname)
        return [_Module(importlib.import_module(name)) for name in names]


@functools.cache
def modules() -> tuple[str, ...]:
    """Names of all modules, those of commands (``__main__``) left out."""
    names = list(PACKAGES)
    for package in PACKAGES:
        path = getattr(importlib.import_module(package), "__path__", [])
        names += [found.name for found in pkgutil.walk_packages(path, f"{package}.")]
    return tuple(sorted(name for name in names if not name.endswith("__main__")))


def _lazy(module: ModuleType) -> dict[str, Any]:
    """Public members that a module imports on first use, as ``tilewright`` does the language."""
    names = getattr(module, "__all__", ())
    return {name: getattr(module, name) for name in names if name not in vars(module)}


def _markdown(docstring: str, module: pdoc.doc.Module, style: str) -> str:
    """Markdown of a docstring, with ``Members`` as a list of names."""
    listed = _MEMBERS.sub(rf"\1{_LISTED}\n\1{'-' * len(_LISTED)}", docstring)
    text = pdoc.render_helpers.to_markdown(listed, module, style)
    return text.replace(f"###### {_LISTED}", "###### Members")


@jinja2.pass_context
def _to_markdown(context: jinja2.runtime.Context, docstring: str) -> str:
    return _markdown(docstring, context["module"], context["docformat"])


def render(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pages of modules, as pairs of a file's name and its text; links reach every module.

    Parameters
    ----------
    names : sequence of str
        Full names; with ``modules()`` the index and the search come too.
    """
    documented = {name: _Module(importlib.import_module(name)) for name in modules()}
    pdoc.render.configure(docformat="numpy")
    pdoc.render.env.filters["to_markdown"] = _to_markdown
    with warnings.catch_warnings(), contextlib.ExitStack() as stack:
        for module in documented.values():
            stack.enter_context(mock.patch.dict(vars(module.obj), _lazy(module.obj)))
        # Views of Amaranth take a parameter in its stubs, not when they run.
        warnings.filterwarnings("ignore", "Error parsing type annotation")
        for name in names:
            yield (
                f"{name.replace('.', '/')}.html",
                pdoc.render.html_module(documented[name], documented),
            )
        if tuple(names) == modules():
            yield "index.html", pdoc.render.html_index(documented)
            yield "search.js", pdoc.render.search_index(documented)


def linked(pages: Mapping[str, str]) -> dict[str, str]:
    """Pages without links to places that none has: pdoc links to private names, and shows none.

    Parameters
    ----------
    pages : mapping of str to str
        Text by file.
    """
    places = {name: set(_PLACE.findall(text)) for name, text in pages.items()}

    def followed(page: str, found: re.Match[str]) -> str:
        target = page
        if found["file"]:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), found["file"]))
        known = target not in places or html.unescape(found["place"]) in places[target]
        return found[0] if known else found["text"]

    return {
        name: _LINK.sub(functools.partial(followed, name), text) for name, text in pages.items()
    }


def write(folder: Path) -> int:
    """Write the page of every module, the index and the search below a folder.

    Returns
    -------
    int
        Number of modules.
    """
    for name, text in linked(dict(render(modules()))).items():
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    return len(modules())
