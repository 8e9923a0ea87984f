"""The kit that bucketq's own tests use, for the tests of those who build on it.

A `MemoryStore` is a whole queue without files or network, a `Clock` makes leases, delays and time-outs pass at once,
and a `FaultyStore` shows what your code does when the bucket fails.
"""

from bucketq.store.memory import MemoryStore
from bucketq.testing.clock import Clock, MachineClock
from bucketq.testing.faults import FaultyStore
from bucketq.testing.plan import Fault
from bucketq.testing.request import Call, Crash, Held

__all__ = ["Call", "Clock", "Crash", "Fault", "FaultyStore", "Held", "MachineClock", "MemoryStore"]
