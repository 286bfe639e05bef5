"""A request that is not answered as asked: the status, and the sentence that says why."""


class RefusedError(Exception):
    """Turned into a JSON answer `{"error": message}` with this status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class BusyError(RefusedError):
    """The model has too much to do: come back later."""

    def __init__(self, message: str) -> None:
        super().__init__(503, message)
