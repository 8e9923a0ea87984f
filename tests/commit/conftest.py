from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bucketq.client.client import Client
from bucketq.client.queue import Queue
from bucketq.testing import Clock, FaultyStore
from tests.commit.support import Bucket, FileBucket


@pytest.fixture
async def bucket() -> AsyncIterator[Bucket]:
    bucket = Bucket()
    yield bucket
    await bucket.close()


@pytest.fixture(params=["memory", "file"])
async def any_bucket(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bucket]:
    bucket = FileBucket(tmp_path / "bucket") if request.param == "file" else Bucket()
    yield bucket
    await bucket.close()


@pytest.fixture
def clock(bucket: Bucket) -> Clock:
    return bucket.clock


@pytest.fixture
def faulty(bucket: Bucket) -> FaultyStore:
    return bucket.faulty


@pytest.fixture
async def client(bucket: Bucket) -> Client:
    return await bucket.connect()


@pytest.fixture
def queue(client: Client) -> Queue[Any]:
    return client.queue("q")
