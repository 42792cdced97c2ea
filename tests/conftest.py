"""What holds for every test. No property is judged by the time that an example takes: the machine may be busy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("pointsman", deadline=None)
settings.load_profile("pointsman")
