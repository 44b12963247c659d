"""XML files that name others: none outside the folder of the first is opened, and no entity is expanded.

The readers of these formats open whatever a file names. So all names are looked at before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from ..errors import LapjointError
from ..system.files import check_file, read_file

MOST_FILES = 1000
LARGEST = 256 * 1024 * 1024
"""Bytes of an XML file."""
ATTRIBUTES = (
    "file",
    "filename",
    "fileup",
    "fileback",
    "filedown",
    "filefront",
    "fileleft",
    "fileright",
    "content_file",
)
FOLDERS = ("meshdir", "texturedir", "assetdir")
_Included = tuple[Path, ElementTree.Element, tuple[Path, ...]]
"""A file, its root, and the files by way of which it is included."""


def parse_xml(path: Path) -> ElementTree.Element:
    """The root of an XML file, each element with its line under the key `:line`. A document type is refused: entities
    could be expanded without end, and name other files."""
    content = read_file(path, LARGEST)
    builder, parser = ElementTree.TreeBuilder(), expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        builder.start(name, {**attributes, ":line": str(parser.CurrentLineNumber)})

    def doctype(*_: object) -> None:
        raise LapjointError(f"{path}: line {parser.CurrentLineNumber}: has a document type, expected none")

    parser.StartElementHandler, parser.EndElementHandler = start, builder.end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = builder.data, doctype
    try:
        parser.Parse(content, True)
        return builder.close()
    except expat.ExpatError as error:
        raise LapjointError(f"{path}: is no XML: {error}") from None
    except AssertionError:
        raise LapjointError(f"{path}: is no XML: it has no element") from None


def check_xml_files(path: Path) -> ElementTree.Element:
    """The root of an XML file. One is refused that is none, that includes itself, or that names a file outside its
    folder, or none that exists; so with all that it includes and all models that it attaches."""
    return _Checker(path.resolve().parent).check_model(path.resolve(), ())


def line_of_nan(root: ElementTree.Element) -> str:
    """Where a file has a number that is none, if it is in this file and not in one that it includes."""
    for element in root.iter():
        if any("nan" in value.lower().split() for value in element.attrib.values()):
            return f"line {element.get(':line')}: {element.tag} "
    return ""


class _Checker:
    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0

    def check_model(self, path: Path, above: tuple[Path, ...]) -> ElementTree.Element:
        """The root of a model: a file with all that it includes. Paths in them are from the folder of the first, and
        directories of meshes count for all of them, whichever names them."""
        base, roots = path.parent, self._included(path, path.parent, above)
        folders = [Path(), *(own for _, root, _ in roots for own in _folders(root))]
        for own in folders:
            if own.is_absolute() or not self._is_inside(base / own):
                raise LapjointError(f"{path}: has meshes or textures in {str(own)!r}, which is outside {self._folder}")
        for source, root, way in roots:
            for element, name in _names(root):
                if element.tag == "include":
                    continue
                inner = self._relative(source, element, name)
                candidates = [base / inner]
                if element.tag != "model":
                    candidates = [base / own / one for own in folders for one in (inner, inner.name)]
                for found in self._existing(candidates, source, element, name):
                    if element.tag == "model":
                        self.check_model(found, (*way, source))
        return roots[0][1]

    def _included(self, path: Path, base: Path, above: tuple[Path, ...]) -> list[_Included]:
        """A file and all that it includes: their roots, and by way of which files."""
        if path in above:
            raise LapjointError(f"{path}: includes itself, by way of {above[-1].name}")
        self._count += 1
        if self._count > MOST_FILES:
            raise LapjointError(f"{above[0]}: includes more than {MOST_FILES} files")
        root = parse_xml(path)
        found = [(path, root, above)]
        for element, name in _names(root):
            if element.tag == "include":
                inner = self._relative(path, element, name)
                for other in self._existing([base / inner, path.parent / inner], path, element, name):
                    found += self._included(other, base, (*above, path))
        return found

    def _is_inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self._folder)

    def _relative(self, path: Path, element: ElementTree.Element, name: str) -> Path:
        """The path that an element names. Where packages are is not known: what follows their names counts."""
        text = name.removeprefix("file://")
        if text.startswith("package://"):
            text = text.removeprefix("package://").partition("/")[2]
        elif "://" in text:
            raise LapjointError(f"{_place(path, element)} names {name!r}, expected a file in the folder of the first")
        if Path(text).is_absolute():
            where = _place(path, element)
            raise LapjointError(f"{where} names {name!r}, expected a path relative to the folder {self._folder}")
        return Path(text)

    def _existing(self, candidates: Iterable[Path], path: Path, element: ElementTree.Element, name: str) -> list[Path]:
        """Those of several places in which there is a file; none of them may be outside."""
        found = []
        for candidate in dict.fromkeys(candidates):
            if not self._is_inside(candidate):
                where = _place(path, element)
                raise LapjointError(f"{where} names {name!r}, which is outside the folder {self._folder}")
            if candidate.exists() and not candidate.is_dir():
                check_file(candidate)
                found.append(candidate.resolve())
        if not found:
            raise LapjointError(f"{_place(path, element)} names {name!r}: there is no such file")
        return found


def _place(path: Path, element: ElementTree.Element) -> str:
    return f"{path}: line {element.get(':line')}: {element.tag}"


def _folders(root: ElementTree.Element) -> list[Path]:
    """Directories that a compiler element has meshes and the like in."""
    found = [element.get(name) for element in root.iter("compiler") for name in FOLDERS]
    return [Path(one) for one in found if one]


def _names(root: ElementTree.Element) -> Iterator[tuple[ElementTree.Element, str]]:
    """Elements that name files, and what they name."""
    for element in root.iter():
        for attribute in ATTRIBUTES:
            name = element.get(attribute)
            if name and not (element.tag == "text" or element.tag == "plugin"):
                yield element, name
