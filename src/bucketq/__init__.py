"""A durable job queue whose only infrastructure is a bucket."""

from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version

from bucketq.client.blocking import SyncClaim, SyncClient, SyncQueue, connect_sync
from bucketq.client.changes import Backoff, QueueSettings
from bucketq.client.claim import Claim
from bucketq.client.client import Client
from bucketq.client.connect import connect
from bucketq.client.job import Attempt, Job
from bucketq.client.parts import Complete, Fail, Push, PushTo, Release
from bucketq.client.queue import Group, Queue
from bucketq.client.schedules import Schedule
from bucketq.errors import (
    BrokerUnavailable,
    BucketqError,
    Conflict,
    JobNotFound,
    LeaseLost,
    NotLeader,
    OutcomeUnknown,
    PayloadInvalid,
    PayloadTooLarge,
    QueueFull,
    ReadOnly,
    SettingInvalid,
    StateCorrupt,
    StoreError,
    StoreStopped,
    Unauthorized,
)
from bucketq.queue.answers import StatsInfo as Stats
from bucketq.store import FileStore, MemoryStore, Object, Store

try:
    __version__ = _version("bucketq")
except _PackageNotFoundError:  # run from a checkout that was not installed
    __version__ = "0+unknown"

__all__ = [
    "Attempt",
    "Backoff",
    "BrokerUnavailable",
    "BucketqError",
    "Claim",
    "Client",
    "Complete",
    "Conflict",
    "Fail",
    "FileStore",
    "Group",
    "Job",
    "JobNotFound",
    "LeaseLost",
    "MemoryStore",
    "NotLeader",
    "Object",
    "OutcomeUnknown",
    "PayloadInvalid",
    "PayloadTooLarge",
    "Push",
    "PushTo",
    "Queue",
    "QueueFull",
    "QueueSettings",
    "ReadOnly",
    "Release",
    "Schedule",
    "SettingInvalid",
    "StateCorrupt",
    "Stats",
    "Store",
    "StoreError",
    "StoreStopped",
    "SyncClaim",
    "SyncClient",
    "SyncQueue",
    "Unauthorized",
    "__version__",
    "connect",
    "connect_sync",
]
