"""The page of one profile, or of two beside each other: one file that needs nothing else."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

__all__ = ["page_of"]

#: Scripts in the order in which they run.
_SCRIPTS = ("common", "overview", "timeline", "floorplan", "source", "main")


def _part(name: str) -> str:
    return resources.files("sim.profile").joinpath("page", name).read_text(encoding="utf-8")


def page_of(profiles: Sequence[Mapping[str, Any]]) -> str:
    """HTML of the page, with data, style and scripts in it.

    Parameters
    ----------
    profiles : sequence of mapping
        One, or two to compare.
    """
    scripts = "\n".join(_part(f"{name}.js").replace('"use strict";\n', "", 1) for name in _SCRIPTS)
    # No text of the data may end its element.
    data = json.dumps(list(profiles), separators=(",", ":")).replace("<", "\\u003c")
    title = " and ".join(f"{profile['kernel']} on {profile['config']}" for profile in profiles)
    parts = {
        "TITLE": html.escape(f"{title}: Tilewright profile"),
        "STYLE": _part("page.css"),
        "DATA": data,
        "SCRIPT": f'"use strict";\n{scripts}',
    }
    # Each part is put in once, into the template and not into what has been put in.
    return re.sub("|".join(parts), lambda mark: parts[mark[0]], _part("page.html"))
