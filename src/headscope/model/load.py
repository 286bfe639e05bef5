"""Loading a model by name: the right class, safetensors only, errors in plain words."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto import modeling_auto
from transformers.utils.hub import cached_file

from headscope.errors import ModelError
from headscope.model.evaluation import quiet
from headscope.model.family import check_family
from headscope.model.model import Model
from headscope.model.origin import Origin, find_place_of
from headscope.model.source import (
    INDEX,
    Source,
    check_index,
    check_sizes,
    explain,
    find_source,
    is_reachable,
)

_HEADS: tuple[tuple[Mapping[Any, Any], Any], ...] = (
    (modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, AutoModelForSeq2SeqLM),
    (modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, AutoModelForMaskedLM),
    (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, AutoModelForCausalLM),
)
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def load(
    name: str | Path | PreTrainedModel,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    revision: str | None = None,
    dtype: str = "float32",
    device: str | None = None,
    trust_remote_code: bool = False,
) -> Model:
    """Load a bundled model, a directory, a .gguf file or a hub id; or wrap a network you have.

    The device is CUDA where there is one, else the CPU. Code from the hub runs only if you ask for
    it.
    """
    if isinstance(name, PreTrainedModel):
        return _wrap(name, tokenizer)
    where, kind = _device(device), _dtype(dtype)
    source = find_source(name)
    options: dict[str, Any] = {
        "revision": revision or "main",
        "trust_remote_code": trust_remote_code,
        "local_files_only": source.hub and not is_reachable(),
    }
    with quiet():
        config = _config(source, options)
        check_family(source.name, config)
        network = _network(source, config, kind, options).to(where)  # pyright: ignore[reportArgumentType]
        own = tokenizer or _tokenizer(source, options)
    if tokenizer is not None:
        return Model(network, own, name=source.name, revision=revision)
    place = find_place_of(source)
    origin = Origin(source.name, place, revision, dtype, where.type, trust_remote_code)
    return Model(network, own, name=source.name, revision=revision, origin=origin)


def _wrap(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> Model:
    if tokenizer is None:
        raise ModelError(
            "A network alone cannot read text: give load its tokenizer too (tokenizer=…)."
        )
    return Model(network, tokenizer)


def _device(name: str | None) -> torch.device:
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"The device {name!r} cannot be used here; try cpu or cuda.") from error
    return device


def _dtype(name: str) -> torch.dtype:
    if name not in DTYPES:
        raise ModelError(f"There is no dtype {name!r}; choose one of {', '.join(DTYPES)}.")
    return DTYPES[name]


def _config(source: Source, options: dict[str, Any]) -> PreTrainedConfig:
    try:
        more = {} if source.gguf is None else {"gguf_file": source.gguf}
        if source.gguf is None:
            check_sizes(source.name, PreTrainedConfig.get_config_dict(source.place, **options)[0])
        return AutoConfig.from_pretrained(source.place, **options, **more)
    except ModelError:
        raise
    except Exception as error:
        raise explain(error, source, "configuration") from error


def _network(
    source: Source, config: PreTrainedConfig, dtype: torch.dtype, options: dict[str, Any]
) -> PreTrainedModel:
    more = {"use_safetensors": True} if source.gguf is None else {"gguf_file": source.gguf}
    # A .gguf file names no architecture; it always holds a language model.
    chosen: Any = auto_class(config) if source.gguf is None else AutoModelForCausalLM
    try:
        _check_hub_index(source, options)
        network, report = chosen.from_pretrained(
            source.place,
            config=config,
            dtype=dtype,
            attn_implementation="eager",
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # and refused below, by name
            **options,
            **more,
        )
    except ModelError:
        raise
    except Exception as error:
        raise explain(error, source, "weights") from error
    _check_complete(source, report)
    return network


def _check_hub_index(source: Source, options: dict[str, Any]) -> None:
    """Look at the index of a hub's model before transformers opens what it names."""
    if not source.hub:
        return  # that of a directory was looked at when it was found
    found = cached_file(
        source.place,
        INDEX,
        revision=options["revision"],
        local_files_only=options["local_files_only"],
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    if found is not None:
        check_index(source.name, Path(found))


def auto_class(config: PreTrainedConfig) -> Any:
    """The class whose head the checkpoint was saved with; AutoModel where that is none of these."""
    names = set(config.architectures or ())
    for mapping, chosen in _HEADS:
        known = mapping.get(config.model_type)
        if known is not None and names & ({known} if isinstance(known, str) else set(known)):
            return chosen
    return AutoModel


def _check_complete(source: Source, report: dict[str, Any]) -> None:
    """Only an unused pooler may be missing: transformers puts random numbers in its place."""
    misfits = sorted(report["mismatched_keys"])
    if misfits:
        key, saved, wanted = misfits[0]
        raise ModelError(
            f"The weights of {source.name} do not fit its config.json: {key} is "
            f"{_by(saved)}, but the configuration wants {_by(wanted)}; {source.repair}."
        )
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise ModelError(
            f"The weights of {source.name} lack {len(missing)} tensors, {missing[0]} among them: "
            f"{source.repair}."
        )


def _by(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))


def _tokenizer(source: Source, options: dict[str, Any]) -> PreTrainedTokenizerBase:
    try:
        more = {} if source.gguf is None else {"gguf_file": source.gguf}
        tokenizer = AutoTokenizer.from_pretrained(source.place, **options, **more)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a tokenizer that panics in Rust raises no Exception
        raise explain(error, source, "tokenizer") from error
    if source.gguf is None and not _has_vocabulary(tokenizer, source, options["revision"]):
        raise ModelError(f"{source.name} has no tokenizer files; add its tokenizer.json.")
    return tokenizer


def _has_vocabulary(tokenizer: PreTrainedTokenizerBase, source: Source, revision: str) -> bool:
    """Whether a file was read: without one, transformers hands out an empty tokenizer."""
    names = tokenizer.vocab_files_names.values()
    found = (
        cached_file(
            source.place,
            name,
            revision=revision,
            local_files_only=True,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        for name in names
    )
    return not names or any(path is not None for path in found)
