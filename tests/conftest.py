"""Settings that hold for every test: how hypothesis searches.

No deadline, because shared machines stall for longer than any honest limit. In CI the search is
derandomised: a red run must be red again when someone looks.
"""

import os

from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
