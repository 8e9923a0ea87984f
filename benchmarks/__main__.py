"""Run the benchmarks, show them beside their targets, and keep the figures.

A whole run writes benchmarks/results/measured.json; a quick, partial or profiled one writes results/local/latest.json.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from benchmarks import claim_complete, footprint, lone_push, machine, memory_push, report, wake
from benchmarks.figures import Bench, Effort, Figure
from benchmarks.profiling import profiled

BENCHES = {
    bench.name: bench
    for bench in (
        machine.BENCH,
        footprint.BENCH,
        memory_push.BENCH,
        lone_push.BENCH,
        claim_complete.BENCH,
        wake.BENCH,
    )
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=BENCHES, help="this benchmark; may be given again")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work: rough figures")
    parser.add_argument("--profile", action="store_true", help="instead of figures, show where the time goes")
    parser.add_argument("--dir", type=Path, default=report.LOCAL, help="on the disk to measure (default: the checkout)")
    return parser.parse_args()


def _run(benches: list[Bench], effort: Effort, console: Console) -> list[tuple[Bench, list[Figure]]]:
    found = []
    for bench in benches:
        with console.status(f"{bench.name} …"):
            found.append((bench, bench.run(effort)))
    return found


def _profile(benches: list[Bench], effort: Effort, console: Console) -> None:
    for bench in benches:
        for title, path in bench.hot(effort).items():
            console.rule(f"{bench.name}: {title}")
            console.print(profiled(path), highlight=False, markup=False)


def main() -> int:
    """0 whatever was reached: a noisy machine is no error."""
    arguments = _arguments()
    console = Console()
    if not console.is_terminal:
        console.width = 150
    benches = [BENCHES[name] for name in arguments.only or BENCHES]
    arguments.dir.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=arguments.dir, prefix="bench-") as folder:
        effort = Effort(arguments.quick, Path(folder).resolve())
        if arguments.profile:
            _profile(benches, effort, console)
            return 0
        conditions = report.conditions(effort)
        found = _run(benches, effort, console)
    report.show(console, found)
    path = report.LOCAL / "latest.json" if arguments.quick or arguments.only else report.MEASURED
    report.write(path, conditions, found)
    console.print(
        f"{conditions.python}, {conditions.cores} cores, load {conditions.load}; figures in {path}", soft_wrap=True
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
