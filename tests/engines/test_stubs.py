"""The stubs of the compiled modules, which mypy checks every call with, say what the modules are."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import lapjoint

MODULES = ["_algorithms", "_bullet_float32", "_bullet_float64", "_measures", "_queries"]
DTYPES = {
    "Ids": {"int32"},
    "Array": {"float64"},
    "Values": {"float32", "float64"},
    "Bits": {"uint64"},
    "Integers": {"int64"},
    "Mask": {"bool"},
    "np.bool_": {"bool"},
    "np.uint8": {"uint8"},
    "np.uint32": {"uint32"},
    "np.int64": {"int64"},
    "np.generic": {"int32", "uint32", "float64", "bool"},
}


def stub_of(name: str) -> ast.Module:
    folder = Path(lapjoint.__file__).parent
    tree = ast.parse((folder / f"{name}.pyi").read_text())
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            assert node.module is not None
            return stub_of(node.module)
    return tree


def arguments_of(native: Any) -> list[tuple[str, set[str]]]:
    """Names of a compiled function's arguments, and the types of those that are arrays."""
    (signature, *_) = native.__nb_signature__[0]
    inside = signature[signature.index("(") + 1 : signature.rindex(") ->")]
    parts, depth = [""], 0
    for letter in inside:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    found = [(part.partition(":")[0].partition("=")[0].strip(), part) for part in parts if part.strip()]
    return [(name, set(re.findall(r"dtype=(\w+)", part))) for name, part in found]


def check_function(native: Any, stub: ast.FunctionDef) -> None:
    stated = [(one.arg, "" if one.annotation is None else ast.unparse(one.annotation)) for one in stub.args.args]
    actual = arguments_of(native)
    assert [name for name, _ in actual] == [name for name, _ in stated], stub.name
    for (name, dtypes), (_, annotation) in zip(actual, stated, strict=True):
        known = set().union(*(kinds for alias, kinds in DTYPES.items() if alias in annotation))
        assert dtypes <= known, f"{stub.name}: {name} is {annotation}, the module takes {dtypes}"


def public(names: Any) -> set[str]:
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("name", MODULES)
def test_a_stub_has_the_names_and_arguments_of_its_module(name: str) -> None:
    module: ModuleType = importlib.import_module(f"lapjoint.{name}")
    stated: set[str] = set()
    for node in stub_of(name).body:
        if isinstance(node, ast.AnnAssign):
            assert isinstance(node.target, ast.Name)
            stated.add(node.target.id)
            assert ast.unparse(node.annotation).partition("[")[0] == type(getattr(module, node.target.id)).__name__
        elif isinstance(node, ast.FunctionDef):
            stated.add(node.name)
            check_function(getattr(module, node.name), node)
        elif isinstance(node, ast.ClassDef):
            stated.add(node.name)
            check_class(getattr(module, node.name), node)
    assert stated == public(dir(module))


def check_class(native: type, stub: ast.ClassDef) -> None:
    attributes = {n.target.id for n in stub.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    methods = {n.name: n for n in stub.body if isinstance(n, ast.FunctionDef)}
    if issubclass(native, Exception):
        assert [base.__name__ for base in native.__bases__] == [ast.unparse(base) for base in stub.bases]
        return  # its attributes are an instance's
    assert attributes | public(methods) == public(dir(native)), stub.name
    for name, method in methods.items():
        if not method.decorator_list:
            check_function(getattr(native, name), method)
