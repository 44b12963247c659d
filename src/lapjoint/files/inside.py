"""XML files that name others: none outside the folder of the first is opened, and no entity is expanded.

The readers of these formats open whatever a file names. So all names are looked at before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from ..errors import LapjointError

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


def parse_xml(path: Path) -> ElementTree.Element:
    """The root of an XML file, each element with its line under the key `:line`. A document type is refused: entities
    could be expanded without end, and name other files."""
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= LARGEST else b""
    except OSError as error:
        raise LapjointError(f"{path}: {error.strerror or error}") from None
    if size > LARGEST:
        raise LapjointError(f"{path}: is {size} bytes large, expected at most {LARGEST}")
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


def check_xml_files(path: Path) -> None:
    """Refuse an XML file that is none, that includes itself, or that names a file outside its folder, or none that
    exists; so with all that it includes."""
    folder = path.resolve().parent
    _check(path.resolve(), folder, folder, (), [0])


def _check(path: Path, folder: Path, base: Path, above: tuple[Path, ...], count: list[int]) -> None:
    if path in above:
        raise LapjointError(f"{path}: includes itself, by way of {above[-1].name}")
    count[0] += 1
    if count[0] > MOST_FILES:
        raise LapjointError(f"{above[0]}: includes more than {MOST_FILES} files")
    root = parse_xml(path)
    folders = _folders(root)
    for element, name in _names(root):
        where = f"{path}: line {element.get(':line')}: {element.tag}"
        text = name.removeprefix("file://")
        if text.startswith("package://") or "://" in text:
            if text.startswith("package://"):
                text = text.removeprefix("package://").partition("/")[2]
            else:
                raise LapjointError(f"{where} names {name!r}, expected a file in the folder of the first")
        inner = Path(text)
        if inner.is_absolute() or any(part.is_absolute() for part in folders):
            raise LapjointError(f"{where} names {name!r}, expected a path relative to the folder {folder}")
        if element.tag in ("include", "model"):
            candidates = [base / inner, path.parent / inner]
        else:
            candidates = [base / own / inner for own in (*folders, Path())] + [base / inner.name]
        for candidate in candidates:
            if not candidate.resolve().is_relative_to(folder):
                raise LapjointError(f"{where} names {name!r}, which is outside the folder {folder}")
        found = [candidate for candidate in candidates if candidate.is_file()]
        if not found:
            raise LapjointError(f"{where} names {name!r}: there is no such file")
        if element.tag in ("include", "model"):
            _check(found[0].resolve(), folder, base, (*above, path), count)


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
