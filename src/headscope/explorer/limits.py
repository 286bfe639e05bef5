"""What a visitor may ask for, and how a request is refused."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes, lengths and times; what exceeds them is refused with the number in the answer."""

    body: int = 768 * 1024  # bytes of a request: three texts with every character escaped
    text: int = 20_000  # characters of a text, pair or target
    generate: int = 64  # tokens
    weights: int = 64_000_000  # of one trace, over all stacks, layers, heads, queries and keys
    blocks: int = 32  # of a long text in one request
    waiting: int = 64  # texts in the queue, the one being traced included
    seconds: float = 60.0  # until a visitor is told to come back, and for one trace
    body_seconds: float = 20.0  # until a request must have arrived
    kept: int = 64 * 1024 * 1024  # bytes of answers that are kept for the next visitor


class RefusedError(Exception):
    """Becomes the answer `{"error": message}` with this status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class BusyError(RefusedError):
    """The model has too much to do: come back later."""

    def __init__(self, message: str) -> None:
        super().__init__(503, message)
