"""From a storage URL to a store."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from bucketq.errors import SettingInvalid
from bucketq.store.base import Store
from bucketq.store.file import FileStore
from bucketq.store.memory import memory_store

_NOT_YET = {"s3", "gs", "az"}
_FORMS = "memory://name or file:///absolute/directory"


def open_store(url: str) -> Store:
    """The store that `url` names: `memory://name` (without a name: a new one) or `file:///absolute/directory`.

    Raises `SettingInvalid` for any other URL, and `StoreError` if the directory can't be used.
    """
    try:
        split = urlsplit(url)
    except ValueError as error:
        raise SettingInvalid(f"{url!r} is not a URL ({error}); write {_FORMS}") from error
    if "://" not in url:
        raise SettingInvalid(f"{url!r} is not a URL; for a directory write {Path(url).absolute().as_uri()}")
    if split.scheme == "memory":
        return memory_store(unquote(split.netloc + split.path))
    if split.scheme == "file":
        return FileStore(_directory(url, split))
    if split.scheme in _NOT_YET:
        raise SettingInvalid(f"{split.scheme}:// is not available in this version yet; use {_FORMS}")
    raise SettingInvalid(f"{url!r}: no store is known as {split.scheme}://; use {_FORMS}")


def _directory(url: str, split: SplitResult) -> Path:
    if split.query or split.fragment:
        raise SettingInvalid(f"{url!r}: ? and # in a directory's name are written %3F and %23")
    if split.netloc not in ("", "localhost") or not split.path.startswith("/"):
        own = Path(unquote(split.netloc + split.path)).absolute().as_uri()
        raise SettingInvalid(f"{url!r}: the path must be absolute, with three slashes: {own}")
    path = unquote(split.path)
    if "\0" in path:
        raise SettingInvalid(f"{url!r}: a NUL byte in the path")
    return Path(path)
