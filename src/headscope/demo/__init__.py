"""The whole instrument on what the package carries: both models, the demo corpus, no network."""

from headscope.demo.demo import demo as demo
