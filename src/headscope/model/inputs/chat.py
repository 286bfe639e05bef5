"""Messages with roles, as the model's own chat template writes them.

The template is a program of the model's maker; nothing says which of the text it writes belongs to
which message. It is found out by asking: a message is changed at one end, the chat is written
again, and the first character that differs is where that end of the message stands.

```
  <|im_start|>user\\nHello<|im_end|>\\n<|im_start|>assistant\\nHi!<|im_end|>\\n
  └ turn: user                       ┘└ turn: assistant                     ┘
                    └content                               └content
```
"""

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, TypeVar

from transformers import PreTrainedTokenizerBase

from headscope.errors import ModelError
from headscope.model.inputs.encode import encode, markers
from headscope.model.inputs.labels import brief
from headscope.model.inputs.tokens import Tokens, Turn

Message = Mapping[str, Any]

Ends = tuple[int | None, int | None]

Written = TypeVar("Written")

SECONDS, MEMORY = 20, 512 * 2**20  # that a template may take for a chat
MOST_CHARACTERS = 4_000_000  # that it may write
_MARK = "\ue000"  # of the private use area: no template writes it


class Chat:
    """A chat and the template that writes it."""

    def __init__(
        self,
        name: str,
        tokenizer: PreTrainedTokenizerBase,
        messages: Sequence[Message],
        options: Mapping[str, Any] | None = None,
    ) -> None:
        check_messages(messages)
        if not tokenizer.chat_template:
            raise ModelError(
                f"{name} has no chat template, so it takes no messages; give it a text, or set "
                "model.tokenizer.chat_template."
            )
        self.name = name
        self.tokenizer = tokenizer
        self.messages = [dict(message) for message in messages]
        self.options = dict(options or {})

    def encode(self, *, answer: bool, limit: int | None, truncate: bool) -> Tokens:
        """The tokens of the chat, with its turns.

        With `answer` they end where the model goes on: after the header of a new answer, or within
        the last message where that is the assistant's own.
        """
        ending = self._ending(answer)
        text, turns = within_limits(self.name, lambda: self._write(ending))
        tokens = encode(
            self.tokenizer, text, special=False, limit=limit, truncate=truncate
        )  # the template has written whatever stands at the beginning
        return replace(tokens, turns=turns)

    def _write(self, ending: dict[str, bool]) -> tuple[str, tuple[Turn, ...]]:
        text = self._written(self.messages, **ending)
        return text, self._turns(text, ending)

    def _ending(self, answer: bool) -> dict[str, bool]:
        if not answer:
            return {}
        is_begun = self.messages[-1]["role"] == "assistant"
        return {"continue_final_message" if is_begun else "add_generation_prompt": True}

    def _written(self, messages: Sequence[Message], **ending: bool) -> str:
        said: Any = list(messages)
        try:
            written = self.tokenizer.apply_chat_template(
                said, tokenize=False, **{**self.options, **ending}
            )
        except MemoryError:
            raise ModelError(_too_much(self.name)) from None
        except Exception as error:
            raise ModelError(
                f"The chat template of {self.name} refuses these messages: "
                f"{brief(str(error)) or type(error).__name__}. Their roles are "
                f"{', '.join(str(message['role']) for message in self.messages)}."
            ) from error
        if len(written) > MOST_CHARACTERS:
            raise ModelError(
                f"The chat template of {self.name} writes {len(written):,} characters, more than "
                f"{MOST_CHARACTERS:,}; correct it."
            )
        return str(written)

    def _turns(self, text: str, ending: dict[str, bool]) -> tuple[Turn, ...]:
        ends_of = [self._ends(number, text, ending) for number in range(len(self.messages))]
        starts = [0]
        for number in range(1, len(self.messages)):
            starts.append(self._start(number, text, starts[-1], ends_of))
        turns = [
            Turn(str(message["role"]), start, _content(*ends))
            for message, start, ends in zip(self.messages, starts, ends_of, strict=True)
        ]
        if "continue_final_message" in ending:  # what the model writes belongs to it
            at = len(text) if turns[-1].content is None else turns[-1].content[0]
            turns[-1] = replace(turns[-1], content=(at, at))
        turns = self._with_preamble(text, turns)
        if "add_generation_prompt" in ending:
            before = len(self._written(self.messages))
            turns.append(Turn("assistant", before, (len(text), len(text))))
        return tuple(turns)

    def _ends(self, number: int, text: str, ending: dict[str, bool]) -> Ends:
        """Where the text of a message begins and ends; nowhere for a call, which has none.

        One end alone is known where a part was left out: templates drop old reasoning.
        """
        message = self.messages[number]
        ends: list[int | None] = []
        for changed in (_marked(message, at_end=False), _marked(message, at_end=True)):
            if changed is None:
                return None, None
            others = [*self.messages[:number], changed, *self.messages[number + 1 :]]
            written = self._written(others, **ending)
            ends.append(None if written == text else _common(text, written))
        if ends == [None, None]:
            raise ModelError(
                f"The chat template of {self.name} leaves out message {number + 1}, whose role is "
                f"{message['role']!r}: it does not know that role there. Rename it, or leave the "
                "message out."
            )
        return ends[0], ends[1]

    def _start(self, number: int, text: str, before: int, ends_of: Sequence[Ends]) -> int:
        """Where a turn begins: where the turns before it end if they are written alone."""
        end = ends_of[number - 1][1]
        low = before if end is None else end
        high = next((start for start, _ in ends_of[number:] if start is not None), len(text))
        try:
            alone = self._written(self.messages[:number])
        except ModelError:  # many templates refuse a system message alone
            alone = ""
        if alone and low <= len(alone) <= high and text.startswith(alone):
            return len(alone)
        return _after_marker(text, low, high, markers(self.tokenizer).values())

    def _with_preamble(self, text: str, turns: list[Turn]) -> list[Turn]:
        """What a template writes before the first message is a system turn of its own."""
        first, system = self.messages[0], {"role": "system", "content": _MARK}
        if first["role"] == "system":
            return turns
        end = turns[1].start if len(turns) > 1 else len(text)
        try:
            before, both = self._written([system]), self._written([system, first])
        except ModelError:
            return turns
        block = both.removeprefix(before)
        region = text[:end]
        if block == both or not block or not region.endswith(block):
            return turns
        preamble = region.removesuffix(block)
        if not preamble.replace(str(self.tokenizer.bos_token or ""), "").strip():
            return turns
        header, _, footer = before.partition(_MARK)
        said = preamble.removeprefix(header).removesuffix(footer)
        content = (
            (len(header), len(header) + len(said)) if header + said + footer == preamble else None
        )
        return [Turn("system", 0, content), replace(turns[0], start=len(preamble)), *turns[1:]]


def within_limits(name: str, write: Callable[[], Written]) -> Written:
    """What a template writes, if it takes neither minutes nor gigabytes.

    A template is a program. It runs in a copy of this process that the operating system stops;
    where a process cannot be copied, as on Windows, nothing does.
    """
    if not hasattr(os, "fork"):
        return write()
    receiver, sender = Pipe(duplex=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the copy lacks
        child = os.fork()
    if child == 0:
        try:
            _limit_memory()
            sender.send(write())
        except BaseException as error:
            sender.send(error if isinstance(error, ModelError) else ModelError(_too_much(name)))
        finally:
            os._exit(0)
    sender.close()
    try:
        is_done = receiver.poll(SECONDS)
        answer = receiver.recv() if is_done else ModelError(_too_much(name))
    except EOFError:  # it was stopped
        answer = ModelError(_too_much(name))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    if isinstance(answer, ModelError):
        raise answer
    return answer


def _limit_memory() -> None:
    """As much as the process has, and some more."""
    if sys.platform == "linux":
        import resource

        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _too_much(name: str) -> str:
    return (
        f"The chat template of {name} takes more than {SECONDS} seconds or {MEMORY // 2**20:,} MB; "
        "correct it, or give the text as it is to be read."
    )


def read_chat(path: str | Path) -> tuple[list[Message], dict[str, Any]]:
    """The messages of a JSON file, and what else its template is to be given, such as tools.

    The file is a list of messages, or an object that has it under "messages".
    """
    try:
        read: Any = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeError:
        raise ModelError(f"{path} is not UTF-8; convert it, for example by iconv.") from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not JSON: {error}.") from error
    is_wrapped = isinstance(read, dict) and "messages" in read
    rest: dict[str, Any] = dict(read) if is_wrapped else {}
    messages: Any = rest.pop("messages") if is_wrapped else read
    try:
        check_messages(messages)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    return messages, rest


def check_messages(messages: Any) -> None:
    """Refuse what is not a list of messages, naming the first that is none."""
    form = 'give a list such as [{"role": "user", "content": "Hello"}]'
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        raise ModelError(f"A chat is a list of messages, not a {type(messages).__name__}; {form}.")
    if not messages:
        raise ModelError(f"The chat has no messages; {form}.")
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping):
            raise ModelError(f"Message {number} is {brief(repr(message))}, not a message; {form}.")
        role, content = message.get("role"), message.get("content")
        if not isinstance(role, str) or not role:
            raise ModelError(f"Message {number} has no role; {form}.")
        if not isinstance(content, str | list) and not (content is None and len(message) > 2):
            raise ModelError(
                f"Message {number} ({role}) has the content {brief(repr(content))}; give its text."
            )


def _marked(message: Message, *, at_end: bool) -> Message | None:
    """The message with a mark at one end of its text."""
    content = message.get("content")
    if isinstance(content, str):
        if not content.strip():
            return None
        return {**message, "content": content + _MARK if at_end else _MARK + content}
    parts = [dict(part) for part in content or () if isinstance(part, Mapping)]
    texts = [part for part in parts if isinstance(part.get("text"), str) and part["text"].strip()]
    if not texts:
        return None
    one = texts[-1 if at_end else 0]
    one["text"] = one["text"] + _MARK if at_end else _MARK + one["text"]
    return {**message, "content": parts}


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _content(start: int | None, end: int | None) -> tuple[int, int] | None:
    return None if start is None or end is None else (start, max(start, end))


def _after_marker(text: str, low: int, high: int, marks: Iterable[str]) -> int:
    """Behind the first marker after a message, which closes it; else where the next one begins."""
    markers_after = [(at, mark) for mark in marks if (at := text.find(mark, low, high)) >= 0]
    if not markers_after:
        return high
    at, mark = min(markers_after, key=lambda pair: (pair[0], -len(pair[1])))
    end = at + len(mark)
    while end < high and text[end].isspace():
        end += 1
    return end
