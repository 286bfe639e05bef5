"""Loading a model by name: the right class, safetensors only, errors in plain words."""

import shutil
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import torch
from transformers import (
    CONFIG_MAPPING,
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
from headscope.model.capture.plan import check_family
from headscope.model.loading.gguf import parsed_once
from headscope.model.loading.memory import check_room, fewer_bytes, within_memory
from headscope.model.loading.network import (
    DeviceMap,
    describe_places,
    find_device,
    quiet,
    read_device_map,
)
from headscope.model.loading.quantization import (
    Quantization,
    check_quantised,
    read_quantization,
)
from headscope.model.loading.source import (
    INDEX,
    Source,
    check_index,
    check_sizes,
    explain,
    find_source,
    in_short,
    is_reachable,
)
from headscope.model.model import Model
from headscope.wording import counted

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
    device_map: DeviceMap | None = None,
    quantization: str | None = None,
    trust_remote_code: bool = False,
) -> Model:
    """Load a bundled model, a directory, a .gguf file or a hub id; or wrap a network you have.

    The device is CUDA where there is one, else the CPU. A `device_map` spreads the weights over
    devices, memory and disk ("auto", or which part goes where); `quantization` stores them in few
    bits ("int8", "int4"). Code from the hub runs only if you ask for it.
    """
    if isinstance(name, PreTrainedModel):
        if tokenizer is None:
            raise ModelError(
                "A network alone cannot read text: give load its tokenizer too (tokenizer=…)."
            )
        return Model(name, tokenizer)
    places = read_device_map(device_map, device)
    bits = None if quantization is None else read_quantization(quantization)
    form = _Form(_dtype(dtype), find_device(device), places, bits)
    source = find_source(name)
    options: dict[str, Any] = {
        "revision": revision or "main",
        "trust_remote_code": trust_remote_code,
        "local_files_only": source.hub and not is_reachable(),
    }
    reading = nullcontext()
    if source.gguf is not None:
        options["gguf_file"] = source.gguf
        reading = parsed_once(Path(source.place, source.gguf))
    with quiet(), reading:
        config = _config(source, options)
        check_family(source.name, config)
        if form.quantization is not None:
            check_quantised(source.name, config)
        network = _network(source, config, form, options)
        reader = tokenizer or _tokenizer(source, options)
    facts: dict[str, Any] = {"revision": revision, "remarks": form.describe(network)}
    if tokenizer is None:  # a tokenizer of one's own cannot be loaded again elsewhere
        facts["origin"] = {
            "name": source.lasting_name,
            "revision": revision,
            "dtype": dtype,
            "device": None if places is not None else form.device.type,
            "device_map": places,
            "quantization": quantization,
            "trust_remote_code": trust_remote_code,
        }
    return form.prove(source, lambda: Model(network, reader, name=source.name, **facts))


@dataclass(frozen=True)
class _Form:
    """In which numbers the weights are held, and where."""

    dtype: torch.dtype
    device: torch.device
    places: DeviceMap | None
    quantization: Quantization | None

    def options(self) -> dict[str, Any]:
        """What `from_pretrained` is given."""
        given: dict[str, Any] = {"dtype": self.dtype}
        if self.places is not None:
            given["device_map"] = self.places
        if self.quantization is not None:
            given["quantization_config"] = self.quantization.config(self.dtype)
            given.setdefault("device_map", {"": str(self.device)})
        return given

    def place(self, network: PreTrainedModel) -> PreTrainedModel:
        """Move a network to its device; one that was placed while it was loaded stays."""
        if self.places is not None or self.quantization is not None:
            return network
        return network.to(self.device)  # pyright: ignore[reportArgumentType]

    def explain(self, error: Exception, source: Source) -> ModelError:
        """Why weights could not be loaded: in this form, or at all."""
        if self.quantization is not None and isinstance(error, RuntimeError):
            return self.quantization.fails(source.name)
        if self.places is not None and isinstance(error, ValueError):
            return _misplaced(error, source)
        return explain(error, source, "weights")

    def prove(self, source: Source, make: Callable[[], Model]) -> Model:
        """Make the model, which proves its capture; weights that were lost on the way show here."""
        try:
            return make()
        except (KeyError, ValueError, RuntimeError) as error:
            if self.places is None:
                raise
            raise _misplaced(error, source) from error

    def describe(self, network: PreTrainedModel) -> tuple[str, ...]:
        """What differs from weights in one piece on one device, in sentences."""
        bits = None if self.quantization is None else self.quantization.describe(network)
        return tuple(remark for remark in (bits, describe_places(network)) if remark is not None)


def _misplaced(error: Exception, source: Source) -> ModelError:
    return ModelError(
        f"{source.name} cannot be spread as the device map says ({in_short(str(error))}); keep "
        "weights that it shares together, or take device_map=auto."
    )


def _dtype(name: str) -> torch.dtype:
    if name not in DTYPES:
        raise ModelError(f"There is no dtype {name!r}; choose one of {', '.join(DTYPES)}.")
    return DTYPES[name]


def _config(source: Source, options: dict[str, Any]) -> PreTrainedConfig:
    try:
        raw = PreTrainedConfig.get_config_dict(source.place, **options)[0]
        check_sizes(source.name, raw)
        if source.gguf is None:
            kind = raw.get("model_type")
            if kind is not None and kind not in CONFIG_MAPPING and "auto_map" not in raw:
                raise ModelError(
                    f"{source.name} is a {kind} model, which transformers "
                    f"{version('transformers')} does not know; update transformers, or take a "
                    "model of another type."
                )
        return AutoConfig.from_pretrained(source.place, **options)
    except ModelError:
        raise
    except Exception as error:
        raise explain(error, source, "configuration") from error


def _network(
    source: Source, config: PreTrainedConfig, form: _Form, options: dict[str, Any]
) -> PreTrainedModel:
    # A .gguf file names no architecture; it always holds a language model.
    kind: Any = auto_class(config) if source.gguf is None else AutoModelForCausalLM
    more: dict[str, Any] = {"use_safetensors": True} if source.gguf is None else {}
    # Weights on disk are written there that their checkpoint does not hold as they are needed.
    folder = None if form.places is None else mkdtemp(prefix="headscope-weights-")
    if folder is not None:
        more["offload_folder"] = folder
    if form.places is None and form.quantization is None:
        check_room(source.name, Path(source.place), form.dtype, form.device)
    try:
        _check_hub_index(source, options)
        with within_memory(source.name, "was loaded", fewer_bytes(form.dtype)):
            network, report = kind.from_pretrained(
                source.place,
                config=config,
                attn_implementation="eager",
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # and refused below, by name
                **form.options(),
                **options,
                **more,
            )
            if source.gguf is not None:  # whose shapes transformers takes as they are
                report["mismatched_keys"] = _misshapen(network, kind)
            _check_complete(source, report)
            network = form.place(network)
    except Exception as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, ModelError):
            raise
        raise form.explain(error, source) from error
    if folder is not None:
        weakref.finalize(network, shutil.rmtree, folder, ignore_errors=True)
    return network


def _check_hub_index(source: Source, options: dict[str, Any]) -> None:
    """Look at the index of a hub's model before transformers opens what it names."""
    if source.hub:  # that of a directory was looked at when it was found
        index = _find_file(source, INDEX, options["revision"], options["local_files_only"])
        if index is not None:
            check_index(source.name, Path(index))


def _find_file(source: Source, name: str, revision: str, local: bool) -> str | None:
    return cached_file(
        source.place,
        name,
        revision=revision,
        local_files_only=local,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )


def auto_class(config: PreTrainedConfig) -> Any:
    """The class whose head the checkpoint was saved with; AutoModel where that is none of these."""
    names = set(config.architectures or ())
    for mapping, kind in _HEADS:
        classes = mapping.get(config.model_type) or ()
        if names & ({classes} if isinstance(classes, str) else set(classes)):
            return kind
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
            f"The weights of {source.name} lack {counted(len(missing), 'tensors')}, "
            f"{missing[0]} among them: {source.repair}."
        )


def _misshapen(network: PreTrainedModel, kind: Any) -> list[tuple[str, Sequence[int], Any]]:
    """Names of the weights whose shape is not that of the configuration, and both shapes."""
    with torch.device("meta"):
        described = kind.from_config(network.config).state_dict()
    weights = network.state_dict()
    pairs = {name: (tuple(weights[name].shape), tuple(described[name].shape)) for name in described}
    return [(name, *shapes) for name, shapes in pairs.items() if shapes[0] != shapes[1]]


def _by(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))


def _tokenizer(source: Source, options: dict[str, Any]) -> PreTrainedTokenizerBase:
    try:
        tokenizer = AutoTokenizer.from_pretrained(source.place, **options)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a tokenizer that panics in Rust raises no Exception
        raise explain(error, source, "tokenizer") from error
    names = tokenizer.vocab_files_names.values()
    files = [_find_file(source, name, options["revision"], True) for name in names]
    # Where no file was read, transformers hands out an empty tokenizer.
    if source.gguf is None and names and all(file is None for file in files):
        raise ModelError(f"{source.name} has no tokenizer files; add its tokenizer.json.")
    return tokenizer
