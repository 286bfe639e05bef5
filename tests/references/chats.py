"""Tiny chat models: a network of each family, with a short template in the style of that family."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from headscope.model.model import Model
from tests.references.tiny_families import family

LENGTH = 512
BOS, EOS, PAD, UNK = "<s>", "</s>", "<pad>", "<unk>"


@dataclass(frozen=True)
class Style:
    """How a family marks the turns of a chat."""

    family: str
    markers: tuple[str, ...]
    template: str
    writes_bos: bool = True
    system: bool = True  # whether a system message may come first
    tool: bool = False  # whether tools may answer

    @property
    def messages(self) -> list[dict[str, str]]:
        asked = [("user", "What is two and two?"), ("assistant", "Four."), ("user", "Thanks, user")]
        first = [("system", "Be brief.")] if self.system else []
        last = [("tool", "4")] if self.tool else []
        return [{"role": role, "content": said} for role, said in [*first, *asked, *last]]


_CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_IM = ("<|im_start|>", "<|im_end|>")

STYLES = (
    Style(
        "Llama",
        ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>"
        "\n\n{{ m['content'] | trim }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}"
        "<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}",
    ),
    Style(
        "Mistral",
        ("[INST]", "[/INST]"),
        "{{ bos_token }}{% set said = messages[0]['content'] if messages[0]['role'] == 'system' "
        "else none %}{% set rest = messages[1:] if said else messages %}{% for m in rest %}"
        "{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('roles must alternate: user, assistant, user') }}{% endif %}"
        "{% if m['role'] == 'user' %}[INST] {% if loop.first and said %}{{ said }}\n\n{% endif %}"
        "{{ m['content'] }}[/INST]{% else %} {{ m['content'] }}{{ eos_token }}{% endif %}"
        "{% endfor %}",
    ),
    Style(
        "Gemma 2",
        ("<start_of_turn>", "<end_of_turn>"),
        "{{ bos_token }}{% for m in messages %}{% if m['role'] not in ['user', 'assistant'] %}"
        "{{ raise_exception('System role not supported') }}{% endif %}<start_of_turn>"
        "{{ 'model' if m['role'] == 'assistant' else 'user' }}\n{{ m['content'] | trim }}"
        "<end_of_turn>\n{% endfor %}"
        "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}",
        system=False,
    ),
    Style(
        "Gemma 3",
        ("<start_of_turn>", "<end_of_turn>"),
        "{{ bos_token }}{% set said = messages[0]['content'] + '\n\n' if messages[0]['role'] == "
        "'system' else '' %}{% set rest = messages[1:] if said else messages %}{% for m in rest %}"
        "<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n"
        "{{ said if loop.first else '' }}{{ m['content'] | trim }}<end_of_turn>\n{% endfor %}"
        "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}",
    ),
    Style(
        "Qwen 2",
        _IM,
        "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nYou help.<|im_end|>\n"
        "{% endif %}" + _CHATML,
        writes_bos=False,
    ),
    Style(
        "Qwen 3",
        _IM,
        "{% for m in messages %}{% set said = m['content'] if loop.last else "
        "m['content'].split('</think>')[-1].lstrip() %}{% if m['role'] == 'tool' %}"
        "<|im_start|>user\n<tool_response>\n{{ said }}\n</tool_response><|im_end|>\n{% else %}"
        "<|im_start|>{{ m['role'] }}\n{{ said }}<|im_end|>\n{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
        writes_bos=False,
        tool=True,
    ),
    Style(
        "Phi-3",
        ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>"),
        "{% for m in messages %}{% if m['role'] in ['system', 'user', 'assistant'] %}"
        "<|{{ m['role'] }}|>\n{{ m['content'] }}<|end|>\n{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>\n{% endif %}",
        writes_bos=False,
    ),
    Style(
        "OLMo 2",
        ("<|endoftext|>", "<|user|>", "<|assistant|>", "<|system|>"),
        "{{ bos_token }}{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}"
        "{% if m['role'] == 'assistant' %}{{ eos_token }}{% endif %}\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>\n{% endif %}",
    ),
    Style(
        "gpt-oss",
        ("<|start|>", "<|message|>", "<|channel|>", "<|end|>", "<|return|>"),
        "<|start|>system<|message|>Reasoning: low<|end|>{% for m in messages %}"
        "<|start|>{{ {'system': 'developer'}.get(m['role'], m['role']) }}"
        "{% if m['role'] == 'assistant' %}<|channel|>final{% endif %}<|message|>{{ m['content'] }}"
        "{{ '<|return|>' if loop.last and m['role'] == 'assistant' else '<|end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant{% endif %}",
        writes_bos=False,
        tool=True,
    ),
    Style(
        "DeepSeek-V3",
        ("<｜User｜>", "<｜Assistant｜>"),
        "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'system' %}{{ m['content'] }}"
        "{% elif m['role'] == 'user' %}<｜User｜>{{ m['content'] }}"
        "{% elif m['role'] == 'assistant' %}<｜Assistant｜>{{ m['content'] }}{{ eos_token }}"
        "{% endif %}{% endfor %}{% if add_generation_prompt %}<｜Assistant｜>{% endif %}",
    ),
    Style(
        "Falcon",
        (),
        "{% for m in messages %}{{ {'system': 'System', 'user': 'User', 'assistant': 'Falcon'}"
        "[m['role']] }}: {{ m['content'] }}\n{% endfor %}"
        "{% if add_generation_prompt %}Falcon:{% endif %}",
        writes_bos=False,
    ),
    Style("MPT", _IM, _CHATML, writes_bos=False),
    Style("SmolLM3", _IM, _CHATML, writes_bos=False),
)  # fmt: skip


def style(name: str) -> Style:
    return next(style for style in STYLES if style.family == name)


@lru_cache(maxsize=4)
def chat_model(name: str) -> Model:
    """The family's tiny network, long enough for a chat, with a template in its style."""
    found = family(name)
    lengths: dict[str, Any] = {"max_position_embeddings": LENGTH}
    if "max_seq_len" in found.options:
        lengths["max_seq_len"] = LENGTH
    made = replace(found, options={**found.options, **lengths})
    return Model(made.network(), tokenizer(style(name)), name=f"tiny-{made.model_type}")


def tokenizer(style: Style) -> PreTrainedTokenizerFast:
    """Bytes as tokens; it puts a BOS before every text that is not a chat."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    named = [UNK, PAD, BOS, EOS]
    numbered = {token: number for number, token in enumerate([*named, *alphabet])}
    built = Tokenizer(models.BPE(vocab=numbered, merges=[]))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    built.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, named.index(BOS))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=built,
        unk_token=UNK,
        pad_token=PAD,
        bos_token=BOS,
        eos_token=EOS,
        additional_special_tokens=list(style.markers),
        chat_template=style.template,
    )
