"""Traces in files: what was seen on one machine is looked at on another, without the model.

A .hst file is a safetensors file. Its arrays are named `stack/part/layer`; its metadata hold the
version of the format and, as JSON with a checksum, everything else, the checksums of the arrays
among it. Arrays are read and checked when they are asked for, and need numpy alone; only who asks
for a tensor imports torch.

Weights may be stored in one or two bytes. With codes c = 0 … C and the lowest and highest number of
a head, low and high, a number is low + c · (high − low) / C, off by at most (high − low) / 2C.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from headscope.errors import ViewError
from headscope.files import find_place, is_local, write_atomically
from headscope.head import read_head
from headscope.model.inputs.tokens import BY_TOKEN, Characters, Tokens, Turn
from headscope.model.trace import ENDING, Precision, StackTrace, Trace
from headscope.wording import shorten

if TYPE_CHECKING:
    from torch import Tensor

FORMAT, VERSION = "headscope-trace", 2
_VERSIONS = ("1", "2")  # that can be read
_WHOLE = ("weights",)
_VECTORS = ("query", "key", "value")
_SMALL = ("value_norms", "bias", "sink")
_OF_NEURONS = {"query", "key", "value", "bias"}
_CODES = {"uint8": np.uint8, "uint16": np.uint16}
_NO_NEURONS = "the trace was stored without queries and keys"
_LARGEST_JSON = 256 * 2**20  # characters


def save_trace(
    trace: Trace, path: str | Path, *, precision: Precision = "exact", neurons: bool = True
) -> None:
    """Write a trace to a .hst file, in one step."""
    place = find_place(path)
    if place.suffix != ENDING:
        raise ViewError(
            f"A trace is kept in a file that ends in {ENDING}, not {place.name}; to draw it, save "
            "one of its views (trace.head_view().save)."
        )
    if precision not in get_args(Precision):
        raise ViewError(
            f"There is no precision {precision!r}; choose one of {', '.join(get_args(Precision))}."
        )
    writer = _Writer(precision, neurons)
    stacks = [writer.stack(stack) for stack in trace.stacks.values()]
    described = {
        "model": trace.model,
        "is_causal": trace.is_causal,
        "prompt_length": trace.prompt_length,
        "no_neurons": trace.no_neurons if neurons else trace.no_neurons or _NO_NEURONS,
        "notes": [*trace.notes, *writer.notes()],
        "bos": trace.bos,
        "word_pieces": trace.word_pieces,
        "without": [str(head) for head in trace.without],
        "stacks": stacks,
        "tokens": writer.tokens,
        "arrays": writer.facts,
    }
    written = json.dumps(described, ensure_ascii=False)
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "trace": written,
        "sha256": _digest(written),
    }
    with write_atomically(place) as temporary:
        temporary.touch()
        rights = temporary.stat().st_mode  # of any new file; what safetensors makes is private
        save_file(writer.arrays, temporary, metadata=metadata)
        temporary.chmod(rights)


def open_trace(path: str | Path) -> Trace:
    """Open a .hst file; one that is cut short, of another version or no trace is refused."""
    place = find_place(path)
    if not is_local(place):
        raise ViewError(f"{path} is not on this machine; download it first.")
    if place.exists() and not place.is_file():
        raise ViewError(f"{path} is not a file; name one that trace.save has made.")
    try:
        opened = safe_open(place, framework="np")
        metadata: Mapping[str, str] = opened.metadata() or {}
    except FileNotFoundError as error:
        raise ViewError(f"There is no file {path}; check its path.") from error
    except OSError as error:
        raise ViewError(f"{path} cannot be read: {error.strerror or error}.") from error
    except SafetensorError as error:
        raise ViewError(
            f"{path} is no trace, or cut short ({shorten(str(error), 80)}); copy it again, or "
            "trace the text again and save it."
        ) from error
    if metadata.get("format") != FORMAT:
        raise ViewError(f"{path} holds arrays, but no trace; open a file that trace.save has made.")
    if metadata.get("version") not in _VERSIONS:
        raise ViewError(
            f"{path} is a trace in version {shorten(metadata.get('version', '?'), 20)} of the "
            f"format, and this Headscope reads versions up to {VERSION}; update Headscope, or save "
            "the trace with this one."
        )
    try:
        if metadata["version"] != "1" and metadata["sha256"] != _digest(metadata["trace"]):
            raise ValueError("its description has another checksum")
        return _Reader(place, opened, metadata["trace"], metadata["version"]).trace()
    except Exception as error:  # what a stranger's file describes fails in many ways
        raise _damaged(place, f"{type(error).__name__}: {error}") from error


class _Writer:
    """Collects arrays under their names; what was stored before is stored once."""

    def __init__(self, precision: Precision, neurons: bool) -> None:
        self._precision: Precision = precision
        self._neurons = neurons
        self._known: dict[tuple[Any, ...], str] = {}
        self._worst = 0.0
        self.arrays: dict[str, np.ndarray] = {}
        self.facts: dict[str, dict[str, Any]] = {}
        self.tokens: list[dict[str, Any]] = []

    def stack(self, stack: StackTrace) -> dict[str, Any]:
        """One stack without its arrays; they are collected."""
        parts: dict[str, list[int]] = {}
        for part in (*_WHOLE, *_VECTORS, *_SMALL):
            layers: Mapping[int, Any] | None = getattr(stack, part)
            if layers is None or (part in _OF_NEURONS and not self._neurons):
                continue
            parts[part] = [int(layer) for layer in layers]
            for layer in layers:
                self._add(f"{stack.name}/{part}/{layer}", _array(layers, layer), part)
        scaling = stack.scaling if self._neurons else None
        return {
            "name": stack.name,
            "layers": list(stack.layers),
            "heads": list(stack.heads),
            "queries": self._tokens(stack.queries),
            "keys": self._tokens(stack.keys),
            "key_head_of": list(stack.key_head_of),
            "scaling": None if scaling is None else {str(n): scaling[n] for n in scaling},
            "softcap": stack.softcap,
            "no_norms": stack.no_norms,
            "parts": parts,
        }

    def notes(self) -> list[str]:
        """How far stored weights may be off."""
        if self._precision == "exact":
            return []
        most = 1.005 * self._worst  # three digits round by less
        return [f"Weights were stored in {self._precision}: each is off by at most {most:.3g}."]

    def _tokens(self, tokens: Tokens) -> int:
        described = asdict(tokens)
        if described not in self.tokens:
            self.tokens.append(described)
        return self.tokens.index(described)

    def _add(self, name: str, array: np.ndarray, part: str) -> None:
        code = self._code(part)
        kept, fact = (array, {}) if code is None else _encoded(array, code)
        if part in _WHOLE and fact:
            self._worst = max(self._worst, *fact["error"])
        content = (_crc32(kept), json.dumps(fact))
        first = self._known.setdefault(content, name)
        if first != name and np.array_equal(self.arrays[first], kept):
            self.facts[name] = {"as": first}  # the mask of one layer is that of the next
            return
        self.arrays[name] = np.ascontiguousarray(kept)
        self.facts[name] = {"crc32": content[0], **fact}

    def _code(self, part: str) -> str | None:
        """Vectors keep two bytes: scores are sums of many products."""
        if self._precision == "exact" or part in _SMALL:
            return None
        return self._precision if part in _WHOLE else "uint16"


class _Reader:
    """Makes a trace of what a file says, and gives out its arrays one by one."""

    def __init__(self, place: Path, opened: Any, described: str, version: str) -> None:
        if len(described) > _LARGEST_JSON:
            raise ValueError("the description is too large")
        self._place = place
        self._opened = opened
        self._described: dict[str, Any] = json.loads(described)
        self._crc32 = _crc32_of_bytes if version == "1" else _crc32
        if version == "1":
            _update(self._described)
        self._names = set(opened.keys())

    def trace(self) -> Trace:
        """The trace; every array that it names is there and has the right shape."""
        told = self._described
        tokens = [_tokens_of(each) for each in told["tokens"]]
        stacks = [self._stack(each, tokens) for each in told["stacks"]]
        if not stacks:
            raise ValueError("it has no stack")
        return Trace(
            model=str(told["model"]),
            stacks={stack.name: stack for stack in stacks},
            is_causal=bool(told["is_causal"]),
            prompt_length=told["prompt_length"],
            no_neurons=told["no_neurons"],
            notes=tuple(map(str, told["notes"])),
            bos=told["bos"],
            word_pieces=bool(told["word_pieces"]),
            without=tuple(map(read_head, told.get("without", ()))),
        )

    def _stack(self, told: Mapping[str, Any], tokens: Sequence[Tokens]) -> StackTrace:
        name, parts = told["name"], told["parts"]
        scaling = told["scaling"]
        stack = StackTrace(
            name=name,
            layers=_numbers(told["layers"]),
            heads=_numbers(told["heads"]),
            queries=tokens[told["queries"]],
            keys=tokens[told["keys"]],
            key_head_of=_numbers(told["key_head_of"]),
            scaling=None if scaling is None else {int(n): float(scaling[n]) for n in scaling},
            softcap=told["softcap"],
            no_norms=told["no_norms"],
            **{part: Stored(self, f"{name}/{part}", _numbers(parts[part])) for part in parts},
        )
        self._check(stack)
        return stack

    def _check(self, stack: StackTrace) -> None:
        expected = (len(stack.heads), len(stack.queries), len(stack.keys))
        if not isinstance(stack.weights, Stored) or tuple(stack.weights) != stack.layers:
            raise ValueError("layers without weights")
        for part in (*_WHOLE, *_VECTORS, *_SMALL):
            for layer in getattr(stack, part) or ():
                self._find(f"{stack.name}/{part}/{layer}")
        for layer in stack.layers:
            if self.shape(f"{stack.name}/weights/{layer}") != expected:
                raise ValueError(f"the weights of layer {layer} do not fit its tokens")

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, which is not read."""
        stored, _ = self._find(name)
        return tuple(self._opened.get_slice(stored).get_shape())

    def read(self, name: str) -> np.ndarray:
        """An array as it was before it was stored, up to the rounding that was asked for."""
        stored, fact = self._find(name)
        try:
            array: np.ndarray = self._opened.get_tensor(stored)
        except SafetensorError as error:
            raise _damaged(self._place, f"{stored}: {error}") from error
        if self._crc32(array) != fact["crc32"]:
            raise _damaged(self._place, f"{stored} has another checksum")
        return array if "low" not in fact else _decoded(array, fact)

    def _find(self, name: str) -> tuple[str, Mapping[str, Any]]:
        fact = self._described["arrays"][name]
        stored = fact.get("as", name)
        if stored not in self._names:
            raise ValueError(f"{stored} is missing")
        return stored, self._described["arrays"][stored]


@dataclass(frozen=True, eq=False)
class Stored(Mapping[int, "Tensor"]):
    """One part of a stack by layer number, read from its file when it is asked for."""

    reader: _Reader
    name: str
    layers: tuple[int, ...]

    def __getitem__(self, layer: int) -> "Tensor":
        import torch

        return torch.from_numpy(self.array(layer))

    def array(self, layer: int) -> np.ndarray:
        """The same as a float32 array, without torch."""
        if layer not in self.layers:
            raise KeyError(layer)
        return self.reader.read(f"{self.name}/{layer}").astype(np.float32, copy=False)

    def __contains__(self, layer: object) -> bool:
        return layer in self.layers

    def __iter__(self) -> Iterator[int]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __repr__(self) -> str:
        return f"Stored({self.name!r}, {len(self)} layers)"


def _array(parts: Mapping[int, Any], layer: int) -> np.ndarray:
    if isinstance(parts, Stored):
        return parts.array(layer)
    return parts[layer].detach().cpu().float().numpy()


def _encoded(array: np.ndarray, code: str) -> tuple[np.ndarray, dict[str, Any]]:
    """Codes of every head between its lowest and its highest number."""
    kind = _CODES[code]
    most = int(np.iinfo(kind).max)
    flat = array.reshape(len(array), -1).astype(np.float64)
    low, high = flat.min(1), flat.max(1)
    step = np.maximum(high - low, 1e-30) / most
    codes = np.rint((flat - low[:, None]) / step[:, None]).astype(kind)
    fact = {"low": low.tolist(), "step": step.tolist(), "error": (step / 2).tolist()}
    return codes.reshape(array.shape), fact


def _decoded(codes: np.ndarray, fact: Mapping[str, Any]) -> np.ndarray:
    wide = (len(codes), *[1] * (codes.ndim - 1))
    low, step = (np.asarray(fact[name], dtype=np.float64).reshape(wide) for name in ("low", "step"))
    return (low + codes * step).astype(np.float32)


def _update(described: dict[str, Any]) -> None:
    """Bring what a file of version 1 says to version 2: there a pair was one text of two lines."""
    sides: list[dict[str, Any]] = described.pop("sides")
    described["bos"] = None
    described["word_pieces"] = any(side.get("word_pieces") for side in sides)
    described["tokens"] = [
        {
            "ids": [],
            "labels": side["tokens"],
            "places": [
                None if special and span == [0, 0] else [*span, 0]
                for span, special in zip(side["offsets"], side["special"], strict=True)
            ],
            "special": side["special"],
            "segments": side["segments"],
            "texts": [side["text"]],
            "turns": side.get("turns", []),
        }
        for side in sides
    ]


def _tokens_of(told: Mapping[str, Any]) -> Tokens:
    tokens = Tokens(
        **{name: _tuples(told[name]) for name in ("ids", "labels", "special", "segments", "texts")},
        places=tuple(None if place is None else Characters(*place) for place in told["places"]),
        turns=tuple(
            Turn(**{name: _tuples(value) for name, value in turn.items()}) for turn in told["turns"]
        ),
    )
    lengths = {len(getattr(tokens, name)) for name in BY_TOKEN if name != "ids" or tokens.ids}
    if lengths != {len(tokens)}:
        raise ValueError("tokens and what is known of them differ in number")
    numbers = {place.text for place in tokens.places if place is not None}
    if not numbers <= set(range(len(tokens.texts))):
        raise ValueError("a token is of a text that is not there")
    return tokens


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _numbers(values: Iterable[Any]) -> tuple[int, ...]:
    return tuple(map(int, values))


def _digest(described: str) -> str:
    """The description has the checksums of all arrays, so this is one of everything."""
    return hashlib.sha256(described.encode()).hexdigest()


def _crc32(array: np.ndarray) -> int:
    """Of type, shape and numbers: the same bytes in another shape are other numbers."""
    return zlib.crc32(_bytes(array), zlib.crc32(f"{array.dtype} {array.shape}".encode()))


def _crc32_of_bytes(array: np.ndarray) -> int:
    """As files of version 1 have it."""
    return zlib.crc32(_bytes(array))


def _bytes(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array).data.cast("B")


def _damaged(place: Path, why: str) -> ViewError:
    return ViewError(
        f"The trace {place} is damaged ({shorten(why, 80)}); copy it again, or trace the text "
        "again and save it."
    )
