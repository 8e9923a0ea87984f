"""What a million waiting jobs take in memory: a process of its own that loads a state and looks at its size."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.figures import Bench, Effort, Figure
from benchmarks.machine import Case, Rig
from bucketq.journal.document import InlineEncoder

JOBS = 1_000_000
TARGET_MB = 1_000


def _resident_mb() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:  # elsewhere only the peak is known
        return _peak_mb()
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def measure(jobs: int) -> dict[str, float]:
    """Growth of this process by a state, its peak, and what the encoder of inline mode keeps beside it."""
    gc.collect()
    before = _resident_mb()
    rig = Rig(Case("waiting", waiting=jobs))
    gc.collect()
    grown, peak = _resident_mb() - before, _peak_mb() - before
    encoder = InlineEncoder()
    encoder.remember(rig.machine.state)
    return {"grown_mb": grown, "peak_mb": peak, "with_inline_encoder_mb": _resident_mb() - before}


def run(effort: Effort) -> list[Figure]:
    jobs = effort.pick(JOBS, JOBS // 10)
    # a spawned interpreter: it must not begin with what this one has loaded and freed
    command = [sys.executable, "-m", __name__, str(jobs)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=Path(__file__).parent.parent)
    found = msgspec.json.decode(done.stdout, type=dict[str, float])
    note = f"peak; payloads of 100 bytes; {found['with_inline_encoder_mb']:,.0f} with inline mode's encoded rows"
    target = TARGET_MB * jobs / JOBS
    return [Figure(f"memory of {jobs:,} waiting jobs", found["peak_mb"], "MB", target, True, note, found)]


def hot(effort: Effort) -> dict[str, Callable[[], object]]:
    return {}


BENCH = Bench("footprint", "none", run, hot)

if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(measure(int(sys.argv[1]))).decode())
