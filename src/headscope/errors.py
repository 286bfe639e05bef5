"""Every error that a user of Headscope can cause, under one base class."""


class HeadscopeError(Exception):
    """What happened, with which value, and what to do: for the person who can fix it."""


class CorpusError(HeadscopeError):
    """A corpus file cannot be read, or lacks what was asked of it."""


class ModelError(HeadscopeError):
    """A model cannot be found, loaded, or given this input."""


class CaptureError(HeadscopeError):
    """Attention weights cannot be had from a model, or do not pass validation."""


class ViewError(HeadscopeError):
    """A view cannot be drawn or saved as asked."""


class RunError(HeadscopeError):
    """A run directory cannot be written, resumed or read."""
