"""The error tree. Each kind says what became of the data: try again, final, or unknown."""

from __future__ import annotations

from typing import ClassVar, Literal

Outcome = Literal["retry", "final", "unknown"]


class BucketqError(Exception):
    """Base of every error raised on purpose. `outcome` says what happened to the request:
    `retry` (nothing changed, the same call may work later), `final` (nothing changed, and the same
    call will fail again), `unknown` (it may have taken effect)."""

    outcome: ClassVar[Outcome] = "final"
    code: ClassVar[str] = "error"


class Conflict(BucketqError):
    """Somebody else wrote first. Retried inside; seen by callers only once 60 s of retries ran out."""

    outcome: ClassVar[Outcome] = "retry"
    code = "conflict"


class StoreError(BucketqError):
    """The store failed and nothing was written; `cause` is what it said."""

    outcome: ClassVar[Outcome] = "retry"
    code = "store_error"

    def __init__(self, message: str, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class StoreStopped(StoreError):
    """The store refuses to go on until the process is restarted, as after a failed fsync."""

    outcome: ClassVar[Outcome] = "final"
    code = "store_stopped"


class OutcomeUnknown(BucketqError):
    """The write may or may not have landed. Ask again with the same dedup key."""

    outcome: ClassVar[Outcome] = "unknown"
    code = "outcome_unknown"

    def __init__(self, message: str, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.cause = cause


class StateCorrupt(BucketqError):
    """A stored object is damaged or of a newer format; `key` names it. Nothing was overwritten."""

    code = "state_corrupt"

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key}: {why}")
        self.key = key
        self.why = why


class JobNotFound(BucketqError):
    """No such job here, or not in a state in which the call means anything."""

    code = "job_not_found"

    def __init__(self, job_id: str, why: str = "no such job") -> None:
        super().__init__(f"job {job_id}: {why}")
        self.job_id = job_id
        self.why = why


class LeaseLost(BucketqError):
    """The claim's token is no longer current: the lease ran out or the job was ended by another."""

    code = "lease_lost"


class QueueFull(BucketqError):
    """The queue has `max_waiting` jobs waiting (or the bucket its maximum of queues or groups)."""

    outcome: ClassVar[Outcome] = "retry"
    code = "queue_full"


class PayloadInvalid(BucketqError):
    """The payload (or result) would not survive the round trip, or is not of the queue's type."""

    code = "payload_invalid"


class PayloadTooLarge(BucketqError):
    """The payload (or result) is larger than `payload_bytes_max`."""

    code = "payload_too_large"


class SettingInvalid(BucketqError):
    """A setting, name or option is unknown or impossible; the message says the rule."""

    code = "setting_invalid"


class ReadOnly(BucketqError):
    """The queue is in read-only mode."""

    outcome: ClassVar[Outcome] = "retry"
    code = "read_only"


class Unauthorized(BucketqError):
    """The token is missing, wrong, or does not cover this call."""

    code = "unauthorized"


class BrokerUnavailable(BucketqError):
    """No broker answered."""

    outcome: ClassVar[Outcome] = "retry"
    code = "broker_unavailable"


class NotLeader(BucketqError):
    """This broker is not the leader; `leader` is the address of the one that is, if known."""

    outcome: ClassVar[Outcome] = "retry"
    code = "not_leader"

    def __init__(self, leader: str | None) -> None:
        super().__init__(f"not the leader; ask {leader}" if leader else "not the leader; none is known yet")
        self.leader = leader
