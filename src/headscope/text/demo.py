"""The bundled corpus: short articles with tags, trees and coreference."""

from dataclasses import replace
from importlib.resources import as_file, files

from headscope.errors import CorpusError
from headscope.text.corpus import Corpus, Source
from headscope.text.readers.conllu import read_conllu
from headscope.text.readers.lines import document_numbers


def demo_corpus() -> Corpus:
    """The corpus that comes with Headscope; small enough to be held in memory without a cache."""
    with as_file(files("headscope.text") / "bundled" / "demo.conllu") as path:
        try:
            corpus = Corpus.from_sentences(read_conllu(path, document_numbers()))
        except CorpusError as error:
            raise CorpusError(
                f"The bundled corpus is missing or damaged ({error}); repair the installation with "
                "`pip install --force-reinstall headscope`."
            ) from error
    return replace(corpus, source=Source("demo", "demo", "CoNLL-U"))
