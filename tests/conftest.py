"""Settings that every test shares: no network, no user caches, reproducible examples."""

import os
import tempfile

from hypothesis import HealthCheck, settings

os.environ["OMP_NUM_THREADS"] = "1"  # two workers share two cores
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HEADSCOPE_CACHE"] = tempfile.mkdtemp(prefix="headscope-tests-")
os.environ.setdefault("MPLBACKEND", "agg")

settings.register_profile(
    "headscope",
    deadline=None,
    derandomize=True,  # a test that passes here passes everywhere
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("headscope")
