"""`python -m jaxgrad check FILE...`"""

import sys

from .cli import main

sys.exit(main())
