"""``tilewright list``: kernels, configurations, components, testbenches and compiler passes."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hw.arch.errors import BadInputError
from sim.cli.kernel_lookup import file_kernels, load_kernel
from sim.cli.options import Subparsers, add_json

if TYPE_CHECKING:
    from sw.language import Kernel

__all__ = ["add", "execute", "modules"]


def add(subparsers: Subparsers) -> None:
    """Register the options of ``list``."""
    parser = subparsers.add_parser(
        "list",
        help="list kernels, configurations, components and testbenches",
        description="List all kernels, configurations, components and testbenches, or only the "
        "kernels of a file.",
    )
    parser.add_argument(
        "file", metavar="FILE.py", nargs="?", help="list only the kernels of this file"
    )
    parser.add_argument(
        "--passes",
        action="store_true",
        help="list only the compiler's passes, in the order of execution",
    )
    add_json(parser)


def modules(package: str) -> list[dict[str, str]]:
    """Name and headline of each public module, read without import for speed."""
    spec = find_spec(package)
    rows = []
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("[!_]*.py")):
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            rows.append({"name": path.stem, "summary": text.partition("\n")[0]})
    return rows


def execute(args: argparse.Namespace) -> dict[str, Any]:
    """Print the names by group, and return them for the report."""
    if args.passes and args.file is not None:
        raise BadInputError(
            f"list must name a file or passes, not both: {args.file} --passes",
            where="--passes",
            value=args.file,
            rule="a file or --passes",
        )
    if args.passes:
        result = {"passes": _passes()}
    else:
        result = _everything() if args.file is None else {"kernels": _of_file(args.file)}
    for group, rows in result.items():
        print(f"{group}:" if rows else f"{group}: none")
        width = max((len(row["name"]) for row in rows), default=0)
        for row in rows:
            print(f"  {row['name']:<{width}}  {row['summary']}")
            if "parameters" in row:
                print(f"{'':<{width + 6}}{row['parameters']}")
    return dict(result)


def _described(kernels: Mapping[str, Kernel]) -> list[dict[str, str]]:
    """Kernels by name, each with signature, headline and parameters."""
    from sim.cli.kernel_parameters import describe_parameters

    return [
        {
            "name": name,
            "summary": "; ".join(filter(None, (kernel.signature.text, _headline(kernel.__doc__)))),
            "parameters": describe_parameters(kernel),
        }
        for name, kernel in kernels.items()
    ]


def _of_file(file: str) -> list[dict[str, str]]:
    """Kernels of a file, named as for ``run``."""
    return _described({f"{file}:{name}": each for name, each in file_kernels(Path(file)).items()})


def _own_kernels() -> list[dict[str, str]]:
    """Kernels of `sw.kernels`."""
    from sw.kernels import modules as kernel_modules

    return _described({name: load_kernel(name) for name in kernel_modules()})


def _passes() -> list[dict[str, str]]:
    from sw.passes.steps import PASSES

    return [{"name": each.name, "summary": each.summary} for each in PASSES]


def _headline(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def _components() -> Iterator[tuple[str, str, str]]:
    """Name, summary and parameters of each component."""
    from sim.components import ARRAYS, COMPONENTS

    for name, component in COMPONENTS.items():
        rules = (f"{each.name}: {each.domain.rule}" for each in component.parameters)
        yield name, component.summary, "; ".join(rules)
    for name, summary in ARRAYS.items():
        yield name, summary, "see `tilewright verilog --help`"


def _everything() -> dict[str, list[dict[str, str]]]:
    from hw.arch.config import named

    return {
        "kernels": _own_kernels(),
        "configs": [
            {
                "name": name,
                "summary": f"{chip.rows} × {chip.columns} mesh, {chip.pcu_count} PCU, "
                f"{chip.pmu_count} PMU, {chip.agcu.count} AGCU, {chip.width_bits}-bit links",
            }
            for name, chip in named.items()
        ],
        "components": [
            {
                "name": name,
                "summary": summary,
                **({"parameters": parameters} if parameters else {}),
            }
            for name, summary, parameters in _components()
        ],
        "blocks": modules("sim.tb"),
    }
