"""Where the time goes: cProfile over all threads of a path."""

from __future__ import annotations

import io
import pstats
import threading
from collections.abc import Callable
from cProfile import Profile


def profiled(path: Callable[[], object], rows: int = 18) -> str:
    """The functions that took most time themselves. Calls cost more under a profiler: compare shares, not seconds."""
    profiles = [Profile()]

    def start(frame: object, event: str, argument: object) -> None:
        own = Profile()
        try:
            own.enable()
        except ValueError:  # since Python 3.12 one profiler sees all threads
            return
        profiles.append(own)

    threading.setprofile(start)
    profiles[0].enable()
    try:
        path()
    finally:
        profiles[0].disable()
        threading.setprofile(None)
    text = io.StringIO()
    stats = pstats.Stats(profiles[0], stream=text)
    for other in profiles[1:]:
        other.create_stats()
        stats.add(other)
    stats.strip_dirs().sort_stats("tottime").print_stats(rows)
    return "\n".join(line for line in text.getvalue().splitlines() if line.strip())
