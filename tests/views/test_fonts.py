"""Figures have the letters of every script without asking what is installed."""

import io
import logging
import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font
from PIL import Image

from headscope.plots import render, style
from headscope.views import figures, head_view
from headscope.views.figures import dress, families
from tests.references.traces import random_trace, side

BUNDLED = Path(figures.__file__).parents[1] / "fonts"
SAMPLES = {
    "CJK": "雨停了。臺灣龍骨 ひらがな カタカナ 渋谷 한국어를 좋아해요 「」（）！？",
    "Devanagari": "हिन्दी में लिखना आसान है। क्षत्रिय",
    "Bengali": "আমি বাংলা লিখি।",
    "Gurmukhi": "ਪੰਜਾਬੀ",
    "Gujarati": "ગુજરાતી",
    "Oriya": "ଓଡ଼ିଆ",
    "Tamil": "தமிழ்",
    "Telugu": "తెలుగు",
    "Kannada": "ಕನ್ನಡ",
    "Malayalam": "മലയാളം",
    "Sinhala": "සිංහල",
    "Thai": "ภาษาไทย",
    "Khmer": "ភាសាខ្មែរ",
    "Myanmar": "မြန်မာ",
    "Ethiopic": "አማርኛ።",
}
BUILT_IN = "Größe naïve Ωμέγα Привет العربية، السلام؟ שלום հայերեն ქართული ລາວ"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any font but those of matplotlib and ours."""
    monkeypatch.setattr(figures, "_installed", tuple)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("script", SAMPLES)
def test_a_bundled_font_has_every_letter_of_its_script(script: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert families(SAMPLES[script]) == ["DejaVu Sans", f"Headscope Sans {script}"]
        assert families(BUILT_IN) == ["DejaVu Sans"]


def test_every_bundled_font_is_tried_and_fits_a_pdf() -> None:
    files = sorted(BUNDLED.glob("*.ttf"))
    assert [file.stem for file in files] == [f"HeadscopeSans-{each}" for each in sorted(SAMPLES)]
    for file in files:
        content = file.read_bytes()
        assert content[:4] == b"\0\1\0\0"  # TrueType outlines: a PDF cannot hold the other kind
        assert FT2Font(str(file)).family_name.startswith("Headscope Sans ")
    assert sum(file.stat().st_size for file in files) < 4_000_000
    assert "SIL OPEN FONT LICENSE" in (BUNDLED / "OFL.txt").read_text(encoding="utf-8")


def test_a_letter_that_no_font_has_is_named_with_the_remedy() -> None:
    with pytest.warns(UserWarning, match=r"No font here has \ue0f1; .*fonts-noto"):
        families("\ue0f1")


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("ending", ["png", "pdf"])
def test_a_view_in_several_scripts_is_drawn_without_a_word(
    tmp_path: Path, ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = side(["雨", "한국", "नहीं", "ภาษา", "العربية", "Größe"])
    view = head_view(random_trace(tokens=tokens), heads=[0])
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        content = view.save(tmp_path / f"x.{ending}").read_bytes()
    assert caplog.records == []
    if ending == "pdf":
        embedded = ("HeadscopeSansCJK", "HeadscopeSansDevanagari", "HeadscopeSansThai")
        assert all(name.encode() in content for name in embedded)


def _ink(text: str) -> np.ndarray:
    with style("letters"):
        figure = Figure(figsize=(1, 0.5))
        figure.text(0.1, 0.3, text, fontsize=20)
        return np.asarray(Image.open(io.BytesIO(render(figure)["png"])).convert("L"))


@pytest.mark.usefixtures("bare")
def test_figures_of_studies_show_letters_and_not_one_sign_for_all() -> None:
    assert (_ink("雨") != _ink("停")).any()
    with pytest.warns(UserWarning, match="No font here has"):
        assert (_ink("\ue0f1") == _ink("\ue0f2")).all()  # what letters without a font look like


def test_texts_of_plain_letters_keep_their_fonts() -> None:
    figure = Figure()
    plain, other = figure.text(0, 0, "nsubj"), figure.text(0, 0, "雨")
    own = plain.get_fontfamily()
    dress(figure)
    assert plain.get_fontfamily() == own
    assert other.get_fontfamily() == [*own, "DejaVu Sans", "Headscope Sans CJK"]
