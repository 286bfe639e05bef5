"""Evaluation mode and eager attention for the time of a forward pass.

Weights are only right without dropout, and only eager attention computes them at all. A network may
belong to somebody who is training it with another implementation, so both settings are put back.

Silence for messages of transformers that would only confuse a user of Headscope.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from weakref import WeakKeyDictionary

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.utils import logging as hf_logging

_lock = Lock()
_TALKATIVE = ("huggingface_hub", "accelerate", "torchao")


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars or advice from transformers and the hub; their errors still come through."""
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    verbosity = hf_logging.get_verbosity()
    bars = hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity(logging.CRITICAL)
    hf_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        hf_logging.set_verbosity(verbosity)
        if bars:
            hf_logging.enable_progress_bar()


@dataclass
class _Settings:
    """What a network was set to before the first of the passes that are running now."""

    passes: int = 0
    training: list[nn.Module] = field(default_factory=list)
    implementations: list[tuple[PreTrainedConfig, str | None]] = field(default_factory=list)
    switchable: list[PreTrainedConfig] | None = None  # found on the first pass


_settings: WeakKeyDictionary[nn.Module, _Settings] = WeakKeyDictionary()


@contextmanager
def evaluating(network: PreTrainedModel) -> Iterator[None]:
    """Set a network to evaluation mode and eager attention; restore it after the last pass.

    Threads may share a network: the settings stay until no pass is left.
    """
    with _lock:
        settings = _settings.setdefault(network, _Settings())
        if settings.passes == 0:
            _apply(network, settings)
        settings.passes += 1
    try:
        yield
    finally:
        with _lock:
            settings.passes -= 1
            if settings.passes == 0:
                _restore(settings)


def _apply(network: PreTrainedModel, settings: _Settings) -> None:
    settings.training = [module for module in network.modules() if module.training]
    for module in settings.training:
        module.training = False
    configs = _configs(network)
    settings.implementations = [(config, config._attn_implementation) for config in configs]
    if settings.switchable is None:
        # transformers 5.15 passes over parts that have a copy of the configuration, as T5's stacks
        # do, so every part is told.
        with quiet():
            for part in network.modules():
                if isinstance(part, PreTrainedModel):
                    part.set_attn_implementation("eager")
        settings.switchable = [c for c in configs if c._attn_implementation == "eager"]
    for config in settings.switchable:
        config._attn_implementation_internal = "eager"


def _restore(settings: _Settings) -> None:
    for module in settings.training:
        module.training = True
    for config, implementation in settings.implementations:
        config._attn_implementation_internal = implementation
    settings.training, settings.implementations = [], []


def _configs(network: PreTrainedModel) -> list[PreTrainedConfig]:
    """The configurations of a network and its parts, each once; they are compared by identity."""
    waiting = [network.config]
    waiting += [m.config for m in network.modules() if isinstance(m, PreTrainedModel)]
    found: dict[int, PreTrainedConfig] = {}
    while waiting:
        config = waiting.pop()
        if id(config) not in found:
            found[id(config)] = config
            parts = (getattr(config, name, None) for name in config.sub_configs)
            waiting += [part for part in parts if isinstance(part, PreTrainedConfig)]
    return list(found.values())
