"""How hard Hypothesis tries: HYPOTHESIS_PROFILE is `default`, `quick` (other Pythons) or `long` (by hand)."""

from __future__ import annotations

import os

from hypothesis import settings

# In CI the same commit always meets the same examples; at a desk each run meets new ones.
settings.register_profile("default", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.register_profile("quick", settings.get_profile("default"), max_examples=15, stateful_step_count=20)
settings.register_profile(
    "long", settings.get_profile("default"), max_examples=5_000, stateful_step_count=200, derandomize=False
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
