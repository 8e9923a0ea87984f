"""What a benchmark hands over: figures beside their targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

Unit = Literal["/s", "%", "×", "ms", "MB"]
Verdict = Literal["met", "met by CPU time", "missed", ""]


class Figure(Struct, frozen=True, omit_defaults=True):
    """One measured value, by wall clock. `target` is the least that will do, or the most if `at_most`; None: shown for
    comparison. `by_cpu` is the same by CPU time, for work that never waits: what it would be on a core of its own."""

    work: str
    reached: float
    unit: Unit
    target: float | None = None
    at_most: bool = False
    note: str = ""
    details: dict[str, float] = {}
    by_cpu: float | None = None

    @property
    def verdict(self) -> Verdict:
        if self.target is None:
            return ""
        if self._will_do(self.reached, self.target):
            return "met"
        return "met by CPU time" if self.by_cpu is not None and self._will_do(self.by_cpu, self.target) else "missed"

    def _will_do(self, value: float, target: float) -> bool:
        return value <= target if self.at_most else value >= target


class Effort(Struct, frozen=True):
    """How much to do: `quick` shows that everything runs, its figures are rough. `folder` is on the disk to measure."""

    quick: bool
    folder: Path

    def pick(self, full: int, quick: int) -> int:
        return quick if self.quick else full


class Bench(Struct, frozen=True):
    """`hot` runs the paths that `--profile` looks into, each under its title."""

    name: str
    store: str
    run: Callable[[Effort], list[Figure]]
    hot: Callable[[Effort], dict[str, Callable[[], object]]]


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least that share of all are not above."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def median(values: Sequence[float]) -> float:
    return quantile(values, 0.5)


def payload_text(number: int) -> bytes:
    """A JSON string of 100 bytes, another for each number: equal ones would share memory as real ones do not."""
    return b'"%098d"' % number
