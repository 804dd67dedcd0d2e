"""`python -m jaxgrad check FILE...`"""

import sys

from jaxgrad.check import main

sys.exit(main())
