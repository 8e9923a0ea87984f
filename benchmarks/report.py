"""The table for a person, and the JSON that is kept."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table

import bucketq
from benchmarks.figures import Bench, Effort, Figure, Verdict

RESULTS = Path(__file__).parent / "results"
MEASURED = RESULTS / "measured.json"
LOCAL = RESULTS / "local"


class Conditions(Struct, frozen=True):
    """Under what the figures were measured. `load` is that of the machine when the run began, others' work included."""

    date: str
    bucketq: str
    python: str
    system: str
    processor: str
    cores: int
    load: float
    folder: str
    file_system: str


class Result(Struct, frozen=True, omit_defaults=True):
    bench: str
    store: str
    work: str
    reached: float
    unit: str
    target: float | None
    at_most: bool
    verdict: str
    note: str
    details: dict[str, float]


class Report(Struct, frozen=True):
    conditions: Conditions
    results: list[Result]


def conditions(effort: Effort) -> Conditions:
    return Conditions(
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        bucketq.__version__,
        f"{platform.python_implementation()} {platform.python_version()}",
        f"{platform.system()} {platform.release()} {platform.machine()}",
        _processor(),
        os.cpu_count() or 0,
        round(os.getloadavg()[0], 2),
        "the checkout" if effort.folder.is_relative_to(RESULTS) else str(effort.folder),
        _file_system(effort.folder),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _file_system(folder: Path) -> str:
    """The type of the file system that a folder is on, where the system says so."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return ""
    under = [(mount[1], mount[2]) for mount in mounts if folder.resolve().is_relative_to(mount[1])]
    return max(under, key=lambda mount: len(mount[0]))[1] if under else ""


def show(console: Console, found: list[tuple[Bench, list[Figure]]]) -> None:
    table = Table(title="bucketq benchmarks")
    for heading in ("store", "work"):
        table.add_column(heading)
    table.add_column("reached", justify="right")
    table.add_column("target", justify="right")
    table.add_column("verdict")
    table.add_column("note", overflow="fold")
    for bench, figures in found:
        for figure in figures:
            target = "" if figure.target is None else ("≤ " if figure.at_most else "≥ ") + _text(figure.target, figure)
            verdict = f"[{_COLOUR[figure.verdict]}]{figure.verdict}"
            table.add_row(bench.store, figure.work, _text(figure.reached, figure), target, verdict, figure.note)
        table.add_section()
    console.print(table)


_COLOUR: dict[Verdict, str] = {"met": "green", "met by CPU time": "yellow", "missed": "red", "": "default"}


def _text(value: float, figure: Figure) -> str:
    digits = {"/s": 0, "%": 0, "×": 2, "ms": 1, "MB": 0}[figure.unit]
    space = "" if figure.unit == "/s" else " "
    return f"{value:,.{digits}f}{space}{figure.unit}"


def write(path: Path, conditions: Conditions, found: list[tuple[Bench, list[Figure]]]) -> None:
    results = [
        Result(
            bench.name,
            bench.store,
            figure.work,
            _rounded(figure.reached),
            figure.unit,
            figure.target,
            figure.at_most,
            figure.verdict,
            figure.note,
            {name: _rounded(value) for name, value in figure.details.items()},
        )
        for bench, figures in found
        for figure in figures
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(Report(conditions, results)), indent=1) + b"\n")


def _rounded(value: float) -> float:
    """Four digits are more than a benchmark knows."""
    return float(f"{value:.4g}")
