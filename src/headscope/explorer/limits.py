"""What a visitor may ask for, and how a request is refused."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes, lengths and times; what exceeds them is refused with the number in the answer."""

    body: int = 128 * 1024  # bytes of a request
    text: int = 20_000  # characters of a text, pair or target
    generate: int = 64  # tokens
    weights: int = 64_000_000  # layers × heads × tokens² of one trace; of long texts one layer's
    blocks: int = 32  # of a long text in one request
    waiting: int = 8  # texts in the queue, the one being traced included
    seconds: float = 60.0  # until a visitor is told to come back


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
