"""How Sphinx makes the site: Markdown by MyST, notebooks by MyST-NB, the theme furo. `tools/make-docs` calls it on a
copy of this folder with the generated pages beside the written ones."""

from __future__ import annotations

import re
import sys
import typing
from pathlib import Path
from typing import Any

import numpy as np
from sphinx.util import typing as sphinx_typing

import lapjoint

HERE = Path(__file__).parent

project, author = "lapjoint", "The lapjoint authors"
version = release = lapjoint.__version__
project_copyright = author
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton"]
root_doc, exclude_patterns = "index", ["theme", "extra"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
default_role = "literal"  # docstrings have names in single backquotes

html_theme, html_title = "furo", "lapjoint"
html_static_path, html_css_files = ["theme"], ["lapjoint.css"]
html_copy_source, html_show_sourcelink = False, False
html_extra_path = ["extra"] if (HERE / "extra").exists() else []  # pages of runs, as they were exported
html_theme_options = {"navigation_with_keys": True}

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block", "colon_fence", "dollarmath"]
nb_execution_mode, nb_execution_timeout, nb_execution_raise_on_error = "cache", 600, True
nb_execution_cache_path = str(HERE.parent / "notebooks")
nb_execution_in_temp, nb_merge_streams = True, True

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints, autodoc_typehints_format = "signature", "short"
autodoc_type_aliases = {name: name for name in ("ArrayLike", "MovingShape", "StaticShape", "Motion", "Joint")}
maximum_signature_line_length = 88
add_module_names = False

# ---- types as one would say them: arrays by their kind of number, no rules of options, names of aliases -------------

stringify = sphinx_typing.stringify_annotation


LIKE_ARRAYS = "_Buffer | _SupportsArray[dtype[Any]] | ArrayLike | complex | bytes | str | ArrayLike"
"""What is left of ArrayLike within another type."""


def plain_type(annotation: Any, *given: Any, **options: Any) -> str:
    """The text of an annotation."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return plain_type(typing.get_args(annotation)[0], *given, **options)
    if origin is np.ndarray:
        (kind,) = typing.get_args(typing.get_args(annotation)[1])
        return f"NDArray[{getattr(kind, '__name__', 'Any')}]"
    text = stringify(annotation, *given, **options)
    text = text.replace(LIKE_ARRAYS, "ArrayLike")
    if "_NestedSequence" in text:  # what ArrayLike stands for
        return "ArrayLike | None" if text.endswith("None") else "ArrayLike"
    return re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text)


def setup(app: Any) -> None:
    """Called when autodoc has been imported."""
    for name, module in list(sys.modules.items()):
        if name.startswith("sphinx.") and getattr(module, "stringify_annotation", None) is stringify:
            vars(module)["stringify_annotation"] = plain_type
