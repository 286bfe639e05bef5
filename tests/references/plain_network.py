"""A network as transformers loads it, and the attention that it itself returns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True)
class PlainNetwork:
    tokenizer: Any
    network: Any  # with eager attention: others return no weights

    def weights(self, ids: list[int], types: list[int] | None = None) -> np.ndarray:
        """(layer, head, query, key)."""
        given = {"input_ids": torch.tensor([ids])}
        if types is not None:
            given["token_type_ids"] = torch.tensor([types])
        with torch.no_grad():
            attentions = self.network.eval()(**given, output_attentions=True).attentions
        return torch.cat(attentions).double().numpy()

    def read(self, text: str) -> tuple[list[int], np.ndarray]:
        """The ids of a text, with what the tokenizer puts around it, and the weights."""
        ids = self.tokenizer(text)["input_ids"]
        return ids, self.weights(ids)

    def tokens(self, ids: list[int]) -> list[str]:
        """The names of tokens in the vocabulary."""
        return self.tokenizer.convert_ids_to_tokens(ids)
