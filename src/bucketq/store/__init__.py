"""Bytes under keys with conditional writes: the seam (`base`), and the stores behind it."""

from bucketq.store.base import Object, Store, Version
from bucketq.store.disk import Disk
from bucketq.store.file import FileStore
from bucketq.store.memory import MemoryStore, memory_store
from bucketq.store.probe import probe
from bucketq.store.url import open_store

__all__ = ["Disk", "FileStore", "MemoryStore", "Object", "Store", "Version", "memory_store", "open_store", "probe"]
