"""BertViz's functions and keyword names over Headscope's views, for notebooks that call them.

Change the import and nothing else: `from headscope.bertviz import head_view, model_view`, and for
the neuron view `from headscope.bertviz.neuron_view import show`.
"""

from headscope.bertviz.head_view import head_view
from headscope.bertviz.model_view import model_view
from headscope.bertviz.neuron_view import show

__all__ = ["head_view", "model_view", "show"]
