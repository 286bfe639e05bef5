"""JSON from a run directory, which may come from a stranger: parsed within limits, read by types.

What is wrong is a RunError that names the place; nothing of the wrong kind gets further.
"""

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from headscope.errors import RunError
from headscope.wording import plain, shorten

DEPTH = 20
TEXT = 20_000  # characters of one text
VALUES = 2_000_000
INTEGER = 2**53  # beyond which a reader in a browser sees another number
Made = TypeVar("Made")


def parse(text: object, what: str) -> Any:
    """The JSON of a text; refuses what is not JSON, not finite, too deep, too long or too much."""
    if not isinstance(text, str):
        raise RunError(f"{what} is not a text.")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{what} is not JSON that can be read ({said(error)}).") from error
    _check_size(value, what)
    return value


def said(error: BaseException) -> str:
    """What another library says of a failure, short enough for a sentence and safe to print."""
    return shorten(plain(str(error)), 120).removesuffix(".") or type(error).__name__


def read_as(kind: type[Made], value: object, what: str) -> Made:
    """A dataclass from parsed JSON, every field of the type that it declares."""
    if not isinstance(value, dict):
        raise RunError(f"{what} is {_name_of(value)}, not an object.")
    hints = get_type_hints(kind)
    known = [field for field in fields(kind) if field.name in value]  # pyright: ignore[reportArgumentType]
    missing = [
        field.name
        for field in fields(kind)  # pyright: ignore[reportArgumentType]
        if field.name not in value and field.default is MISSING and field.default_factory is MISSING
    ]
    if missing or len(known) < len(value):
        raise RunError(f"{what} has other fields than {kind.__name__}.")
    made = {
        field.name: _read(hints[field.name], value[field.name], f"{what}: {field.name}")
        for field in known
    }
    return kind(**made)


def require(kind: Any, value: object, what: str) -> None:
    """Refuse a value that is not of the type."""
    _read(kind, value, what)


def _read(kind: Any, value: Any, what: str) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if is_dataclass(kind) and isinstance(kind, type):
        return read_as(kind, value, what)
    if origin in (Union, types.UnionType):
        return _read_either(parts, value, what)
    if origin is Literal and value in parts and isinstance(value, str):
        return value
    if origin is tuple and isinstance(value, list):
        return tuple(_read(parts[0], each, what) for each in value)
    if _is_mapping(origin or kind) and isinstance(value, dict):
        return {name: _read((*parts, Any, Any)[1], each, what) for name, each in value.items()}
    if origin is None and _is_plain(kind, value):
        return value
    raise RunError(f"{what} is {_name_of(value)}, which is not what is written there.")


def _read_either(parts: tuple[Any, ...], value: Any, what: str) -> Any:
    for part in parts:
        try:
            return _read(part, value, what)
        except RunError:
            continue
    raise RunError(f"{what} is {_name_of(value)}, which is not what is written there.")


def _is_mapping(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Mapping)


def _is_plain(kind: Any, value: Any) -> bool:
    if kind is type(None):
        return value is None
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)


def _name_of(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    numbers = {int: "a number", float: "a number", type(None): "null"}
    return (names | numbers).get(type(value), "something else")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _check_size(value: Any, what: str) -> None:
    """Without recursion: what is checked may be deep."""
    waiting, count = [(value, 0)], 0
    while waiting:
        each, depth = waiting.pop()
        count += 1
        if depth > DEPTH or count > VALUES:
            raise RunError(f"{what} has more within it than a run has there.")
        if isinstance(each, dict):
            waiting += [(inner, depth + 1) for pair in each.items() for inner in pair]
        elif isinstance(each, list):
            waiting += [(inner, depth + 1) for inner in each]
        else:
            _check_value(each, what)


def _check_value(value: Any, what: str) -> None:
    if isinstance(value, int) and abs(value) > INTEGER:
        raise RunError(f"{what} has a number of too many digits.")
    if isinstance(value, float) and abs(value) == float("inf"):  # 1e999
        raise RunError(f"{what} has a number that is not finite.")
    if isinstance(value, str):
        check_text(value, what)


def check_text(text: str, what: str) -> None:
    """Refuse a text that is too long to be shown or holds halves of characters."""
    if len(text) > TEXT:
        raise RunError(f"{what} has a text of {len(text):,} characters, more than {TEXT:,}.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise RunError(f"{what} has a text that is not Unicode.") from error
