"""The local engine does one piece after the other, and only when the next outcome is asked for."""

from dataclasses import dataclass, field

import pytest

from headscope.errors import RunError
from headscope.workers import LocalEngine, find_engine


@dataclass(frozen=True)
class Inverse:
    """Divides one by numbers, and notes what happens."""

    notes: list[str] = field(default_factory=list)
    threads: int = 1
    needs_gpu: bool = False

    def open(self) -> None:
        self.notes.append("open")

    def __call__(self, number: int, /) -> float:
        self.notes.append(str(number))
        return 1 / number

    def describe(self, number: int, /) -> str:
        return f"Number {number}"


def test_the_work_is_opened_once_and_pieces_are_done_as_they_are_asked_for() -> None:
    work = Inverse()
    with LocalEngine().open() as pool:
        outcomes = pool.run(work, [4, 2, 1])
        assert next(outcomes) == (4, 0.25)
        assert work.notes == ["open", "4"]
        assert list(outcomes) == [(2, 0.5), (1, 1.0)]
    assert work.notes == ["open", "4", "2", "1"]


def test_an_error_is_raised_at_its_piece() -> None:
    with LocalEngine().open() as pool:
        outcomes = pool.run(Inverse(), [1, 0, 2])
        assert next(outcomes) == (1, 1.0)
        with pytest.raises(ZeroDivisionError):
            next(outcomes)


def test_this_process_has_all_threads() -> None:
    with LocalEngine().open() as pool:
        assert pool.share(7, needs_gpu=False) == 7


def test_options_of_ray_without_ray_are_refused() -> None:
    with pytest.raises(RunError, match="add `--engine ray`"):
        find_engine("local", workers=2)
    with pytest.raises(RunError, match="no engine 'spark'; choose one of local, ray"):
        find_engine("spark")
