"""From a URL to a store, or to words that say how to write it."""

from __future__ import annotations

import pytest

from bucketq.errors import SettingInvalid, StoreError
from bucketq.store import FileStore, MemoryStore, open_store


def test_a_memory_url_names_a_shared_store():
    store = open_store("memory://jobs")
    assert isinstance(store, MemoryStore)
    assert open_store("memory://jobs") is store
    assert open_store("memory://Jobs") is not store
    assert open_store("memory://") is not open_store("memory://")


async def test_a_file_url_names_a_directory_which_is_made(tmp_path):
    store = open_store(f"file://{tmp_path}/a%20b/%3Fc%25")
    assert isinstance(store, FileStore)
    await store.create("queue.json", b"x")
    assert (tmp_path / "a b" / "?c%" / "queue.json").read_bytes() == b"x"
    await store.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("jobs", "file:///"),
        ("/var/jobs", "file:///var/jobs"),
        ("./jobs", "file:///"),
        ("", "file:///"),
        ("file:jobs", "file:///"),
        ("file://jobs/mail", "three slashes: file:///"),
        ("file://", "three slashes"),
        ("file:///jobs?x=1", "%3F"),
        ("file:///jobs#x", "%23"),
        ("file:///jo%00bs", "NUL"),
        ("s3://bucket/prefix", "not available in this version yet"),
        ("gs://bucket", "not available in this version yet"),
        ("az://bucket", "not available in this version yet"),
        ("redis://localhost", "memory://name or file:///"),
        ("memory://[", "not a URL"),
    ],
)
def test_any_other_url_is_refused_in_words_that_help(url, said):
    with pytest.raises(SettingInvalid) as refused:
        open_store(url)
    assert said in str(refused.value)


def test_a_root_that_is_a_file_is_refused_in_words_that_help(tmp_path):
    (tmp_path / "taken").write_text("")
    for path in [tmp_path / "taken", tmp_path / "taken" / "below"]:
        with pytest.raises(StoreError, match="Name a directory") as refused:
            open_store(path.as_uri())
        assert isinstance(refused.value.cause, NotADirectoryError)
