"""Every key of the bucket stands here."""

from __future__ import annotations

from datetime import UTC, datetime

FORMAT = 1
"""Of all stored objects. A newer one is refused, nothing is written."""

QUEUE_KEY = "queue.json"
ARCHIVE_PREFIX = "archive/"
_SEGMENT_END = ".ndjson.zst"


def segment_folder(time_us: int) -> str:
    """The hourly folder of a segment that is sealed at that time."""
    return datetime.fromtimestamp(time_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H")


def segment_key(folder: str, k: int) -> str:
    return f"{ARCHIVE_PREFIX}{folder}/{k:020d}{_SEGMENT_END}"


def parse_segment_key(key: str) -> tuple[str, int] | None:
    """Folder and number of a segment's key; None for anything else."""
    parts = key.removeprefix(ARCHIVE_PREFIX).split("/")
    if not key.startswith(ARCHIVE_PREFIX) or len(parts) != 2 or not parts[1].endswith(_SEGMENT_END):
        return None
    number = parts[1].removesuffix(_SEGMENT_END)
    return (parts[0], int(number)) if number.isdecimal() else None


def folder_end_us(folder: str) -> int:
    """The end of a folder's hour; nothing in it was sealed later."""
    start = datetime.strptime(folder, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    return (int(start.timestamp()) + 3_600) * 1_000_000
