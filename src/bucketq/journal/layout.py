"""Every key of the bucket stands here."""

from __future__ import annotations

import re
from datetime import UTC, datetime

FORMAT = 1
"""Of all stored objects. A newer one is refused, nothing is written."""

QUEUE_KEY = "queue.json"
ARCHIVE_PREFIX = "archive/"
_SEGMENT_KEY = re.compile(r"archive/(\d{4}-\d\d-\d\dT\d\d)/(\d{20})\.ndjson\.zst", re.ASCII)


def segment_folder(time_us: int) -> str:
    """The hourly folder of a segment that is sealed at that time."""
    return datetime.fromtimestamp(time_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H")


def segment_key(folder: str, k: int) -> str:
    return f"{ARCHIVE_PREFIX}{folder}/{k:020d}.ndjson.zst"


def parse_segment_key(key: str) -> tuple[str, int] | None:
    """Folder and number of a segment's key; None for anything else."""
    match = _SEGMENT_KEY.fullmatch(key)
    return (match[1], int(match[2])) if match else None


def folder_end_us(folder: str) -> int:
    """The end of a folder's hour; nothing in it was sealed later."""
    start = datetime.strptime(folder, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    return (int(start.timestamp()) + 3_600) * 1_000_000
