"""No compiled function goes on with a value that has changed: every sentence of the grammar."""

import pytest
from capture.test_staleness import CONTAINERS, OBJECTS, REACHES, check


@pytest.mark.parametrize("reach", REACHES, ids=lambda reach: reach.__name__)
@pytest.mark.parametrize("kind", OBJECTS | CONTAINERS)
def test_every_kind_of_state(kind, reach):
    check(*(OBJECTS | CONTAINERS)[kind], reach)
