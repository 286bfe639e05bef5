import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headscope.errors import CorpusError
from headscope.model.model import Model
from headscope.studies.clark2019.probes.vectors import InputEmbeddings, read_vectors
from headscope.studies.shared.words import WordTokens, encode_words
from tests.references.tiny_models import MODELS, make_sentences

TEXT = "the 0.5 1 -2\nDog 3 4 5\ndog 9 9 9\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_words_are_looked_up_in_lower_case_and_unknown_ones_are_zero(tmp_path: Path) -> None:
    vectors = read_vectors(write(tmp_path / "v.txt", TEXT))
    found = vectors.look_up(["THE", "dog", "cat"])
    np.testing.assert_array_equal(found, [[0.5, 1, -2], [3, 4, 5], [0, 0, 0]])
    assert vectors.size == 3
    assert vectors.source == "v.txt (3-d)"


def test_a_header_line_is_recognised(tmp_path: Path) -> None:
    vectors = read_vectors(write(tmp_path / "v.txt", "3 3\n" + TEXT))
    assert set(vectors.places) == {"the", "dog"}


def test_compressed_files_and_arrays_hold_the_same(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "v.txt.gz", "wt", encoding="utf-8") as file:
        file.write(TEXT)
    np.save(tmp_path / "a.npy", np.array([[0.5, 1, -2], [3, 4, 5]]))
    write(tmp_path / "a.words", "the\nDog\n")
    packed = read_vectors(tmp_path / "v.txt.gz").look_up(["the", "dog"])
    array = read_vectors(tmp_path / "a.npy").look_up(["the", "dog"])
    np.testing.assert_array_equal(packed, array)


def test_only_the_words_asked_for_are_kept(tmp_path: Path) -> None:
    vectors = read_vectors(write(tmp_path / "v.txt", TEXT), frozenset({"dog"}))
    assert list(vectors.places) == ["dog"]


def test_words_with_spaces_inside_are_read(tmp_path: Path) -> None:
    vectors = read_vectors(write(tmp_path / "v.txt", "a 1 2\n. . . 3 4\n"))
    np.testing.assert_array_equal(vectors.look_up([". . ."]), [[3, 4]])


@pytest.mark.parametrize("line", ["dog 3 4", "dog 3 4 5 6", "dog"])
def test_vectors_of_another_length_are_refused_with_their_line(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "v.txt", f"the 0.5 1 -2\n\n{line}\n")
    with pytest.raises(CorpusError, match=r"v\.txt:3 has a vector of \d numbers where 3"):
        read_vectors(path)


def test_what_is_no_number_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"v\.txt:2 is not a word and its vector: '3 x 5'"):
        read_vectors(write(tmp_path / "v.txt", "the 0.5 1 -2\ndog 3 x 5\n"))


def test_missing_files_and_missing_words_are_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="There is no vector file"):
        read_vectors(tmp_path / "none.txt")
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    with pytest.raises(CorpusError, match=r"a\.txt or a\.words"):
        read_vectors(tmp_path / "a.npy")
    write(tmp_path / "a.txt", "one\n")
    with pytest.raises(CorpusError, match=r"\(2, 3\) but a\.txt has 1 words"):
        read_vectors(tmp_path / "a.npy")
    with pytest.raises(CorpusError, match="no vector for any word"):
        read_vectors(write(tmp_path / "v.txt", TEXT), frozenset({"cat"}))


def embedding_table(model: Model) -> torch.Tensor:
    embedding: Any = model.network.get_input_embeddings()
    return embedding.weight


def test_own_vectors_are_the_mean_of_the_pieces_and_say_so() -> None:
    model = MODELS["bidirectional"]()
    vectors = InputEmbeddings.of_model(model)
    (tokens,) = encode_words(model, make_sentences(1))
    assert isinstance(tokens, WordTokens)
    found = vectors.of(tokens)
    table = embedding_table(model).detach()
    for word, pieces in enumerate(tokens.tokens_of_word):
        expected = sum(table[tokens.tokens.ids[t]] for t in pieces) / len(pieces)
        torch.testing.assert_close(found[word], expected)
    assert vectors.source == "input embeddings of tiny-bidirectional (12-d)"
