"""What is fuzzed: each takes one random input and raises if the answer is not as promised."""

import io
import os
import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from random import Random
from typing import Any

import h5py
import pyarrow as pa
from starlette.testclient import TestClient

import headscope as hs
from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from headscope.files import LENGTH, checksum, seal
from headscope.results.dataset import KEPT_BY_FORMAT, load, save
from headscope.results.examples import exemplars_of
from headscope.results.measure import heads_of
from headscope.results.records import EXAMPLES, INPUTS, with_checksums
from headscope.results.run import read_run
from tests.fuzz import mutate
from tests.mistakes.hostile_runs import SECRET, spoilers
from tests.references.explorer_models import tiny_model
from tests.references.runs import write_run

CONLLU = """# newdoc id = d
# global.Entity = eid-etype-head-other
# sent_id = s1
# text = Du chat don't sit.
1-2\tDu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\t_\t_\t3\tcase\t_\tEntity=(e1-a-1-
2\tle\tle\tDET\t_\tGender=Masc|Number=Sing\t3\tdet\t_\t_
3\tchat\tchat\tNOUN\t_\t_\t6\tnsubj\t_\tEntity=e1)
4-5\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
4\tdo\tdo\tAUX\t_\t_\t6\taux\t_\t_
5\tn't\tnot\tPART\t_\t_\t6\tadvmod\t_\t_
5.1\tx\t_\t_\t_\t_\t_\t_\t_\tEntity=(e2[1/2]-a-1-)
6\tsit\tsit\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No|Entity=(e2[2/2]-a-1-)
7\t.\t.\tPUNCT\t_\t_\t6\tpunct\t_\t_

"""
CONLL = """#begin document (a/b); part 000
a/b 0 0 The DT (S * - - - - * (1
a/b 0 1 cat NN *) * - - - - * 1)
a/b 0 2 -LRB- -LRB- * * - - - - * (2)

#end document
"""
JSONL = """{"text": "A cat sat.", "document": "d", "paragraph": 1, "id": "s"}
{"words": ["A", "cat"], "upos": ["DET", null], "head": [1, -1], "deprel": ["det", "root"]}
{"words": ["It", "sat"], "mentions": [{"entity": "e", "spans": [[0, 1], [1, 2]]}]}
"""
TEXT = "A cat sat.\nOn a mat.\n\nAnother document.\n"


class Fuzzer(ABC):
    """One kind of input; `folder` is its own."""

    name = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def one(self, chance: Random) -> None:
        """One input; a HeadscopeError is an answer, any other exception a failure."""


class Corpora(Fuzzer):
    """Damaged files of every format: sentences or a CorpusError."""

    name = "corpora"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        os.environ["HEADSCOPE_CACHE"] = str(folder / "cache")
        conllu = folder / "good.conllu"
        conllu.write_text(CONLLU * 3, encoding="utf-8")
        hs.Corpus.write(folder / "good.parquet", hs.read_corpus(conllu))
        self._good = {
            ".conllu": CONLLU.encode() * 2,
            ".conll": CONLL.encode(),
            ".jsonl": JSONL.encode(),
            ".txt": TEXT.encode(),
            ".parquet": (folder / "good.parquet").read_bytes(),
            ".arrow": _arrow_stream(),
        }

    def one(self, chance: Random) -> None:
        """Read a damaged file to its end."""
        suffix = chance.choice(list(self._good))
        path = self.folder / f"spoilt{suffix}"
        path.write_bytes(mutate.mutate(self._good[suffix], chance))
        shutil.rmtree(self.folder / "cache", ignore_errors=True)
        for sentence in hs.read_corpus(path):
            for word in sentence.words:
                assert 0 <= word.start <= word.end <= len(sentence.text)
                assert word.head is None or -1 <= word.head < len(sentence.words)


def _arrow_stream() -> bytes:
    table = pa.table({"text": [TEXT, None, "A cat. A mat."], "document": ["a", "b", None]})
    file = io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


class CachedParquet(Fuzzer):
    """A damaged conversion is made again: never another sentence, never a refusal."""

    name = "cached Parquet"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._cache = folder / "cache"
        self._path = folder / "good.conllu"
        self._path.write_text(CONLLU * 20, encoding="utf-8")
        os.environ["HEADSCOPE_CACHE"] = str(self._cache)
        self._expected = list(hs.read_corpus(self._path))
        self._files = {file: file.read_bytes() for file in (self._cache / "corpora").iterdir()}

    def one(self, chance: Random) -> None:
        """Damage the copy or its checksum, by bits or by more, and read it."""
        os.environ["HEADSCOPE_CACHE"] = str(self._cache)
        file = chance.choice(list(self._files))
        damage = chance.choice((mutate.flip, mutate.flip, mutate.mutate))
        file.write_bytes(damage(self._files[file], chance))
        assert list(hs.read_corpus(self._path)) == self._expected, "another sentence"


class Runs(Fuzzer):
    """Hostile and rotten run directories: listed with a note, and never a number that is wrong."""

    name = "runs"
    asked = ("", "/measures/entropy", "/heads/L0H1", "/clusters", "/statements")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._good = write_run(folder / "good", "vig2019")
        self._known = read_run(self._good)
        (folder / "secret").write_text(SECRET * 50, encoding="utf-8")
        self._spoilers = spoilers()

    def one(self, chance: Random) -> None:
        """Spoil a copy, open it and ask for everything."""
        place = self.folder / "spoilt"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self._good, place)
        is_rot = chance.random() < 0.7
        if is_rot:
            files = [file for file in sorted(place.rglob("*")) if file.is_file()]
            file = chance.choice(files)
            file.write_bytes(mutate.flip(file.read_bytes(), chance))
        else:
            self._spoilers[chance.choice(list(self._spoilers))](place)
        with visit(Library([place]), Texts(None, None)) as visitor:
            for path in ("/api/session", *(f"/api/runs/spoilt{each}" for each in self.asked)):
                answer = visitor.get(path)
                assert answer.status_code < 500, (path, answer.text)
                assert SECRET not in answer.text, path
        if is_rot:
            self._check_rot(place)

    def _check_rot(self, place: Path) -> None:
        """Whatever is shown after a bit was turned is what was stored, or there is a note."""
        run, known = read_run(place), self._known
        if run.notes or run.result is None:
            return
        assert known.result is not None
        assert run.result.identical(known.result), "another number in silence"
        for head in heads_of(run.result):
            shown = exemplars_of(run.records, head)
            assert shown == exemplars_of(known.records, head), "another exemplar in silence"


class SealedRuns(Fuzzer):
    """Damage under honest checksums, as a stranger makes it: an answer or a sentence.

    An attribute of result.nc becomes any text or number, or bits and pieces of a Parquet file move.
    """

    name = "sealed runs"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._good = write_run(folder / "good", "vig2019")

    def one(self, chance: Random) -> None:
        """Damage a copy, seal it, open it and look at every head."""
        place = self.folder / "sealed"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self._good, place)
        if chance.random() < 0.5:
            self._change_attribute(place / "result.nc", chance)
        else:
            self._change_examples(place, chance)
        run = read_run(place)
        if run.result is not None:
            for head in heads_of(run.result):
                exemplars_of(run.records, head)

    def _change_attribute(self, path: Path, chance: Random) -> None:
        path.write_bytes(path.read_bytes()[:-LENGTH])
        with h5py.File(path, "a") as file:
            owner = file[chance.choice(sorted(file))] if chance.random() < 0.7 else file
            names = [name for name in owner.attrs if name not in KEPT_BY_FORMAT]
            value = chance.choice((*mutate.NASTY, 5, -1, 0.5, "[" * 60_000, "9" * 6000, "x" * 9**5))
            if names and "\x00" not in str(value):
                owner.attrs[chance.choice(names)] = value
        path.write_bytes(seal(path.read_bytes()))

    def _change_examples(self, place: Path, chance: Random) -> None:
        file = place / chance.choice((EXAMPLES, INPUTS))
        file.write_bytes(mutate.mutate(file.read_bytes(), chance))
        checksums = {name: checksum(place / name) for name in (EXAMPLES, INPUTS)}
        save(with_checksums(load(place), checksums), place / "result.nc")


class Requests(Fuzzer):
    """Arbitrary requests: answered, refused in a sentence, or asked to come back."""

    name = "API"
    paths = (
        "/", "/overview", "/theme.css", "/static/{}", "/api/session",
        "/api/openapi.json", "/api/runs/{}", "/api/runs/{}/measures/{}", "/api/runs/{}/heads/{}",
        "/api/runs/{}/records/{}", "/api/runs/{}/inputs/{}", "/api/runs/{}/clusters",
        "/api/runs/{}/statements",
        "/api/compare/{}/{}", "/api/compare/{}/{}/{}", "/api/{}", "/{}",
    )  # fmt: skip
    known = ("vig", "later", "entropy", "pos_to~NOUN", "L0H1", "L1H2", "main.js", "shell/main.js")
    fields = ("text", "pair", "target", "generate", "kind", "layer", "head", "blocks", "other")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        runs = [write_run(folder / "vig", "vig2019"), write_run(folder / "later", "vig2019")]
        self._visitor = visit(Library(runs), Texts("tiny-gpt2", tiny_model))

    def one(self, chance: Random) -> None:
        """One request."""
        answer = self._post(chance) if chance.random() < 0.5 else self._get(chance)
        assert answer.status_code < 500 or answer.status_code == 503, answer.text
        if answer.status_code >= 400:
            assert isinstance(answer.json()["error"], str)

    def _get(self, chance: Random) -> Any:
        path = chance.choice(self.paths)
        names = [chance.choice((*self.known, *mutate.NASTY)) for _ in range(path.count("{}"))]
        encoded = ["".join(f"%{byte:02x}" for byte in name.encode()) for name in names]
        method = chance.choice(("GET", "GET", "GET", "HEAD", "DELETE", "OPTIONS"))
        answer = self._visitor.request(method, path.format(*encoded), headers=self._headers(chance))
        return self._visitor.get("/api/session") if method == "HEAD" else answer

    def _post(self, chance: Random) -> Any:
        body: Any = {"text": "The cat sat."}
        for _ in range(chance.randrange(4)):
            body[chance.choice(self.fields)] = mutate.value(chance)
        content = mutate.as_json(body if chance.random() < 0.9 else mutate.value(chance))
        if chance.random() < 0.2:
            content = mutate.mutate(content, chance)
        headers = {"content-type": "application/json"} | self._headers(chance)
        return self._visitor.post("/api/trace", content=content, headers=headers)

    def _headers(self, chance: Random) -> dict[str, str]:
        if chance.random() < 0.7:
            return {}
        name = chance.choice(("host", "origin", "content-type", "cookie", "sec-fetch-site"))
        return {name: chance.choice(("evil.com", "[::1]evil.com", "", "null", "127.0.0.1:80@x"))}


def visit(library: Library, texts: Texts) -> TestClient:
    """A visitor whom exceptions reach."""
    return TestClient(create_app(library, texts), base_url="http://127.0.0.1:8642")


FUZZERS: tuple[type[Fuzzer], ...] = (Corpora, CachedParquet, Runs, SealedRuns, Requests)
