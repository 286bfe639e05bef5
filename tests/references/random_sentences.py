"""Random sentences for property tests, and how CoNLL-U writes them in CorefUD's notation."""

from hypothesis import strategies as st

from headscope.text.sentence import ROOT, Mention, Sentence, Word

# No character that the file formats give a meaning: tab, line ends, brackets, bars, equals signs.
letters = st.characters(
    categories=["Lu", "Ll", "Lo", "Nd", "Po", "So"], exclude_characters='()|=#_"'
)
forms = st.text(letters, min_size=1, max_size=6)
tags = st.none() | st.sampled_from(["NOUN", "VERB", "a:b", "É"])


@st.composite
def heads(draw: st.DrawFn, count: int) -> list[int]:
    """Heads without a cycle: every word hangs on one that comes earlier in a random order."""
    order = draw(st.permutations(range(count)))
    chosen = [ROOT] * count
    for place in range(1, count):
        chosen[order[place]] = draw(st.sampled_from([ROOT, *order[:place]]))
    return chosen


@st.composite
def mentions(draw: st.DrawFn, count: int) -> tuple[Mention, ...]:
    """Mentions of different entities that nest, cross, touch and fall into parts."""
    found = []
    for number in range(draw(st.integers(0, 4))):
        edges = sorted(draw(st.sets(st.integers(0, count), min_size=2, max_size=6)))
        spans = tuple(zip(edges[0::2], edges[1::2], strict=False))
        found.append(Mention(f"e{number}", spans))
    found.sort(key=lambda m: (m.spans[0][0], -m.spans[-1][1], m.entity))
    return tuple(found)


@st.composite
def sentences(draw: st.DrawFn) -> Sentence:
    texts = draw(st.lists(forms, min_size=1, max_size=8))
    glued = draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    arcs = draw(heads(len(texts)))
    words, text = [], ""
    for form, is_glued, head in zip(texts, glued, arcs, strict=True):
        text += "" if is_glued or not text else " "
        upos, xpos, feats, deprel = (draw(tags) for _ in range(4))
        end = len(text) + len(form)
        words.append(Word(form, len(text), end, upos, xpos, feats, head, deprel))
        text += form
    return Sentence(
        text,
        tuple(words),
        draw(mentions(len(words))),
        document=draw(st.sampled_from(["a", "b b"])),
        id=draw(st.sampled_from(["", "s-1"])),
    )


def to_conllu(sentence: Sentence) -> str:
    lines = [f"# newdoc id = {sentence.document}", "# global.Entity = eid-etype-head-other"]
    lines += [f"# sent_id = {sentence.id}"] if sentence.id else []
    lines += [f"# text = {sentence.text}"]
    for index, word in enumerate(sentence.words):
        head = "_" if word.head is None else str(word.head + 1)
        cells = [word.upos, word.xpos, word.feats, head, word.deprel, None, _misc(sentence, index)]
        lines.append("\t".join([str(index + 1), word.text, "_", *(cell or "_" for cell in cells)]))
    return "\n".join(lines) + "\n\n"


def _misc(sentence: Sentence, index: int) -> str | None:
    """Closing brackets first, then those that open or do both."""
    opening, closing = "", ""
    for mention in sentence.mentions:
        for number, (start, end) in enumerate(mention.spans, start=1):
            count = len(mention.spans)
            name = mention.entity if count == 1 else f"{mention.entity}[{number}/{count}]"
            if start == index:
                opening += f"({name}-person-1-" + (")" if end == index + 1 else "")
            elif end == index + 1:
                closing += f"{name})"
    items = [f"Entity={closing}{opening}"] if opening or closing else []
    words = sentence.words
    if index + 1 < len(words) and words[index].end == words[index + 1].start:
        items.append("SpaceAfter=No")
    return "|".join(items) or None
