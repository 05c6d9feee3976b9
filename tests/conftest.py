"""Hypothesis profiles and the collector of garbage, for all tests.

No profile has a deadline: nothing here depends on the speed of the machine. On a build machine the examples are fixed,
so that a red build is red again; at a desk each run tries new ones. `make soak` takes many more of them.
"""

import gc
import os
import signal

from hypothesis import settings

SOAK_EXAMPLES = 5_000
"""Examples of each property test in `make soak`, unless the test says otherwise."""

YOUNG = 100_000
"""New objects until garbage is looked for: worlds and graphs live long, and it took a sixth of their time."""

gc.set_threshold(YOUNG, *gc.get_threshold()[1:])

# Started in the background of a shell, pytest ignores SIGINT, and all programs that it starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("soak", deadline=None, max_examples=SOAK_EXAMPLES)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
