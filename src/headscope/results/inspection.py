"""What may be in a run directory: looked at before anything of it is read.

A run directory may come from a stranger. Nothing in it may point outside it, be something other
than a plain file or folder, or claim to be larger than it is worth: links, pipes, HDF5 data stored
elsewhere, arrays that unpack to gigabytes.

JSON from a run directory, which may come from a stranger: parsed within limits, read by types.

What is wrong is a RunError that names the place; nothing of the wrong kind gets further.
"""

import math
import re
import stat
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import h5py
import msgspec
import numpy as np

from headscope.errors import RunError
from headscope.wording import plain, said, shorten

FOLDERS = ("shards", "stages", "tables", "figures")
MEGABYTE = 2**20
_SCALING = ("scale_factor", "add_offset")  # would make eight bytes of one
_POINTER = np.dtype([("length", "<u4"), ("address", "<u8"), ("index", "<u4")])  # to a text in HDF5
DEPTH = 20
TEXT = 20_000  # characters of one text
STRINGS = 2_000_000  # of one JSON text
INTEGER = 2**53  # beyond which a reader in a browser sees another number
Made = TypeVar("Made")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


@dataclass(frozen=True)
class Limits:
    """How much of what a result may hold."""

    settings: int = MEGABYTE  # bytes of run.json
    file: int = 4096 * MEGABYTE  # bytes of result.nc, or of a file of examples
    variables: int = 1000
    dimensions: int = 12  # of one variable
    values: int = 2048 * MEGABYTE  # bytes of all arrays together, unpacked
    texts: int = 32 * MEGABYTE  # characters of all attributes
    array_texts: int = 128 * MEGABYTE  # characters of one array, all texts as long as the longest
    attributes: int = 200  # of one object


LIMITS = Limits()


def inspect_folder(path: Path, limits: Limits = LIMITS) -> None:
    """Refuse a run directory in which something is a link, a pipe or far too large."""
    for name, most in (
        ("run.json", limits.settings),
        ("result.nc", limits.file),
        ("report.html", limits.file),
    ):
        require_file(path / name, most)
    for name in FOLDERS:
        require_folder(path / name)


def require_file(path: Path, most: int = LIMITS.file) -> None:
    """Refuse what is there under a file's name and is not a plain file of a sensible size."""
    found = _look(path)
    if found is None:
        return
    mode, size = found
    if not stat.S_ISREG(mode):
        raise RunError(f"{path} is not a plain file but a link, pipe or folder; it is not opened.")
    if size > most:
        raise RunError(
            f"{path} has {size:,} bytes, more than the {most:,} that a run may have there."
        )


def require_folder(path: Path) -> None:
    """Refuse what is there under a folder's name and is not a folder."""
    found = _look(path)
    if found is not None and not stat.S_ISDIR(found[0]):
        raise RunError(f"{path} is not a folder but a link, pipe or file; it is not opened.")


def _look(path: Path) -> tuple[int, int] | None:
    """Mode and size of what is there, a link not followed; None for nothing or remote files."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError, NotImplementedError):
        return None
    return int(getattr(found, "st_mode", 0)) or stat.S_IFREG, int(found.st_size)


def inspect_result(file: h5py.File, content: BinaryIO, name: str, limits: Limits = LIMITS) -> None:
    """Refuse an HDF5 file that points outside itself or claims more than a result can have.

    Results are not compressed, so that a file takes no more memory than it is large.
    """
    texts, total = _inspect_attributes(file, name, limits, 0), 0
    if len(file) > limits.variables:
        raise RunError(f"{name} has more than {limits.variables} variables; it is no result.")
    for key in map(str, file):
        if not isinstance(file.get(key, getlink=True), h5py.HardLink):
            raise RunError(f"{name}: {named(key)} is a link, maybe to another file; not followed.")
        array = file[key]
        if not isinstance(array, h5py.Dataset):
            raise RunError(f"{name}: {named(key)} is no array, as all that a result holds.")
        texts += _inspect_attributes(array, f"{name}: {named(key)}", limits, texts)
        total += _inspect_dataset(array, content, name, limits)
        if total > limits.values:
            raise RunError(f"{name} unpacks to more than {limits.values:,} bytes; it is no result.")


def _inspect_dataset(dataset: h5py.Dataset, content: BinaryIO, name: str, limits: Limits) -> int:
    """The bytes of the array, if all of them lie in this file and are plausible."""
    what = f"{name}: {named(str(dataset.name).lstrip('/'))}"
    if dataset.external or dataset.is_virtual:
        raise RunError(f"{what} is stored in another file, which is not opened.")
    if len(dataset.shape or ()) > limits.dimensions:
        raise RunError(f"{what} has {len(dataset.shape)} dimensions.")
    if (kind := h5py.check_string_dtype(dataset.dtype)) and kind.length is None:
        return _inspect_texts(dataset, content, what, limits)
    unpacked, packed = int(dataset.nbytes), int(dataset.id.get_storage_size())
    if unpacked > MEGABYTE and unpacked > packed:
        raise RunError(f"{what} claims {unpacked:,} bytes and holds {packed:,}; it is not read.")
    return unpacked


def _inspect_texts(dataset: h5py.Dataset, content: BinaryIO, what: str, limits: Limits) -> int:
    """The bytes of an array of texts, each as long as the longest, as NumPy has them.

    Many texts of an array may be the same object of the file, a long one. How long they are is
    read from the array itself: a length of four bytes, then where the object is.
    """
    offset, count = dataset.id.get_offset(), int(dataset.size or 0)
    if offset is None:
        raise RunError(f"{what} has texts that are not stored in a row, as those of a result are.")
    content.seek(offset)
    pointers = np.frombuffer(content.read(_POINTER.itemsize * count), _POINTER)
    characters = count * int(pointers["length"].max(initial=0))
    if len(pointers) < count or characters > limits.array_texts:
        raise RunError(f"{what} has texts of {characters:,} characters; it is not read.")
    return 4 * characters


def _inspect_attributes(
    owner: h5py.Group | h5py.Dataset, what: str, limits: Limits, before: int
) -> int:
    """The characters of the attributes; `before` are those of others."""
    if len(owner.attrs) > limits.attributes:
        raise RunError(f"{what} has {len(owner.attrs):,} attributes.")
    characters = 0
    for key in owner.attrs:
        if key in _SCALING:
            raise RunError(f"{what} has numbers to be scaled, which no result has.")
        about = owner.attrs.get_id(key)
        if about.get_storage_size() > MEGABYTE:
            raise RunError(f"{what}: the attribute {named(key)} is too large.")
        if h5py.check_string_dtype(about.dtype):
            if math.prod(about.shape) > 1:
                raise RunError(f"{what}: the attribute {named(key)} is not one text.")
            characters += len(str(owner.attrs[key]))
        if before + characters > limits.texts:
            raise RunError(f"{what}: the attribute {named(key)} is too large.")
    return characters


def named(name: object) -> str:
    """A name from a file for a message."""
    return shorten(plain(str(name)), 60)


def read_json(text: object, kind: type[Made], what: str) -> Made:
    """A value of a type from JSON that may come from a stranger.

    Refuses what is no JSON or of another type, and what is too deep, too long or too much.
    """
    if not isinstance(text, str):
        raise RunError(f"{what} is not a text.")
    _check_strings(text, what)
    try:
        value = _decoder(kind).decode(text)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise RunError(f"{what} cannot be read ({said(error)}).") from error
    _check_depth(value, what)
    return value


@cache  # making one takes longer than reading a measure
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def read_as(kind: type[Made], value: object, what: str) -> Made:
    """A value of a type from what was parsed already."""
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        raise RunError(f"{what} cannot be read ({said(error)}).") from error


def _check_strings(text: str, what: str) -> None:
    """Refuse JSON with too many texts, or with one that is too long to be shown."""
    for count, match in enumerate(_STRING.finditer(text)):
        length = match.end() - match.start() - 2
        if length > TEXT:
            raise RunError(f"{what} has a text of {length:,} characters, more than {TEXT:,}.")
        if count > STRINGS:
            raise RunError(f"{what} has more within it than a run has there.")


def _check_depth(value: Any, what: str) -> None:
    """Without recursion: what is checked may be deep. Within typed values nothing can be."""
    waiting = [(value, 0)]
    while waiting:
        inner, depth = waiting.pop()
        if depth > DEPTH:
            raise RunError(f"{what} has more within it than a run has there.")
        if isinstance(inner, int) and abs(inner) > INTEGER:
            raise RunError(f"{what} has a number of too many digits.")
        if isinstance(inner, dict):
            waiting += [(part, depth + 1) for part in inner.values()]
        elif isinstance(inner, list):
            waiting += [(part, depth + 1) for part in inner]


def check_text(text: str, what: str) -> None:
    """Refuse a text that is too long to be shown or holds halves of characters."""
    if len(text) > TEXT:
        raise RunError(f"{what} has a text of {len(text):,} characters, more than {TEXT:,}.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RunError(f"{what} has a text that is not Unicode.") from error
