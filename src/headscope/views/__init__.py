"""Three views of attention: heads, the whole model, neurons; for notebooks, files and print.

Imported on first use, so that the declarations in `headscope.views.state` stay light to import.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headscope.views.view import View as View
    from headscope.views.view import head_view as head_view
    from headscope.views.view import model_view as model_view
    from headscope.views.view import neuron_view as neuron_view

__all__ = ["View", "head_view", "model_view", "neuron_view"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'headscope.views' has no attribute {name!r}")
    from headscope.views import view

    return getattr(view, name)
