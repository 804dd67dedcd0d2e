"""Programs of the matrix of views and writes (tests/storage/test_matrix.py) under jit.

make oracle
"""

import pytest
from oracle.seed import drawn
from storage import test_matrix, views

pytestmark = test_matrix.pytestmark


@pytest.mark.parametrize("view", views.VIEWS, ids=str)
def test_compiled(view):
    test_matrix.check_compiled(drawn(test_matrix.every_program(view), 4))
