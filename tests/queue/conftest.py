import pytest

from tests.queue.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()
