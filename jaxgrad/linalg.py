"""Linear algebra: torch.linalg.

The operators of the table whose names begin with `linalg_`, and functions composed of operators.
"""

from . import ops
from .core.linalg_error import LinAlgError as LinAlgError
from .functions.linalg_norms import matrix_norm as matrix_norm
from .functions.linalg_norms import norm as norm
from .functions.linalg_products import diagonal as diagonal
from .functions.linalg_products import multi_dot as multi_dot
from .functions.linalg_products import vander as vander
from .functions.linalg_products import vecdot as vecdot
from .functions.linalg_solve import cholesky as cholesky
from .functions.linalg_solve import inv as inv
from .functions.linalg_solve import ldl_factor as ldl_factor
from .functions.linalg_solve import lu_factor as lu_factor
from .functions.linalg_solve import solve as solve
from .functions.linalg_solve import solve_ex as solve_ex
from .functions.linalg_solve import tensorinv as tensorinv
from .functions.linalg_solve import tensorsolve as tensorsolve
from .functions.linalg_spectral import cond as cond
from .functions.linalg_spectral import matrix_power as matrix_power
from .functions.linalg_spectral import matrix_rank as matrix_rank

__getattr__, __dir__ = ops.module_functions("linalg_", globals())
