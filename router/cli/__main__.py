"""`python -m router.cli`, for where the console script is not on the path."""

import sys

from router.cli import main

sys.exit(main())
