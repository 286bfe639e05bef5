"""The bundled corpus: short articles with tags, trees and coreference."""

from importlib.resources import as_file, files

from headscope.errors import CorpusError
from headscope.text.corpus import Corpus
from headscope.text.read import read_corpus


def demo_corpus() -> Corpus:
    """The corpus that comes with Headscope; works offline."""
    with as_file(files("headscope.text") / "bundled" / "demo.conllu") as path:
        try:
            return read_corpus(path)
        except CorpusError as error:
            raise CorpusError(
                f"The bundled corpus is missing or damaged ({error}); repair the installation with "
                "`pip install --force-reinstall headscope`."
            ) from error
