"""What keys and versions look like in the stores that bucketq keeps itself (memory, file)."""

from __future__ import annotations

import hashlib

from bucketq.errors import SettingInvalid
from bucketq.store.base import Version

PART_BYTES_MAX = 255
"""What the usual file systems take as a name."""


def version_of(data: bytes) -> Version:
    """A hash of the content: a change made behind the store's back, as with an editor, is noticed too."""
    return hashlib.sha256(data).hexdigest()[:32]


def check_key(key: str) -> None:
    """Raise `SettingInvalid` unless `key` is relative, stays below the root, and names nothing hidden."""
    for part in key.split("/"):
        if not part:
            raise SettingInvalid(f"key {key!r}: an empty part; keys are relative, with one / between parts")
        if part.startswith("."):
            raise SettingInvalid(f"key {key!r}: a part begins with a dot; such names are the store's own")
        if "\0" in part:
            raise SettingInvalid(f"key {key!r}: a NUL byte")
        if not _fits(part):
            raise SettingInvalid(f"key {key!r}: a part is not text or is longer than {PART_BYTES_MAX} bytes")


def folder_of(prefix: str) -> str:
    """The folder in which every key that begins with `prefix` lies ("" is the root); checked like a key."""
    folder = prefix.rpartition("/")[0]
    if folder:
        check_key(folder)
    return folder


def is_visible(name: str) -> bool:
    """Whether a name found in a directory may be part of a key: neither hidden nor undecodable."""
    return not name.startswith(".") and _fits(name)


def _fits(part: str) -> bool:
    if part.isascii():
        return len(part) <= PART_BYTES_MAX
    try:
        return len(part.encode()) <= PART_BYTES_MAX
    except UnicodeEncodeError:
        return False
