"""Head colours: 64 for a light and 64 for a dark background.

Each was taken as the colour farthest from all before it, in OKLab, for the worst of four kinds of
sight: normal, protan, deutan and tritan. So any prefix is about as distinguishable as that many
colours can be; `tests/views/test_palette.py` measures the distances.
"""

LIGHT = (
    "#1f70eb #f5ad29 #473d00 #52ccff #ad7066 #850085 #0000d6 #8f8fc2 "
    "#7a5c0a #7a66a3 #d68529 #99c299 #a32966 #5c8fff #661f52 #5c52b8 "
    "#5cadff #c2660a #70ad70 #cca3cc #1f5c47 #d60a8f #0033ff #7a7acc "
    "#6600ad #c27a99 #7ad670 #70471f #a35c47 #29667a #ff7a66 #e09900 "
    "#6666c2 #cc8fa3 #c28fe0 #9929a3 #333d70 #701433 #ad0a47 #7033d6 "
    "#857aad #b80085 #cc7047 #cc66eb #ad3d66 #479985 #b833e0 #eb477a "
    "#850a00 #1f8f66 #52d63d #290aeb #85b885 #6629c2 #520099 #cc14ff "
    "#ff3db8 #850066 #708514 #ccadeb #ad9952 #8f0a99 #eb0aad #ff291f"
).split()

DARK = (
    "#5ca3ff #f5f570 #996600 #c2ad7a #7af5ff #3d7a99 #8f14ff #66ccff "
    "#ad8f00 #ebc200 #c2e0ad #e0007a #e085b8 #8570d6 #cc7a70 #ccffc2 "
    "#ff99d6 #d633b8 #85e070 #5285ff #8fb800 #cc7ad6 #a37a3d #ad14cc "
    "#ebe00a #a3cca3 #70e0ff #ad5252 #33ad99 #5cb8ff #99ebd6 #eb1fe0 "
    "#a3a352 #adffeb #d6eb8f #cc2999 #6670b8 #ff7099 #b87ab8 #f585d6 "
    "#adc25c #c25cff #3da37a #d6ff00 #e0a3b8 #e03d99 #47e01f #ffadc2 "
    "#47995c #eb5252 #eb2914 #adf5cc #f5b8e0 #c2c285 #f55c8f #ebcc8f "
    "#a38feb #ada3eb #8f7acc #9933e0 #9947ff #99667a #8feb66 #ff8f00"
).split()

POSITIVE, NEGATIVE = "#1f6fd6", "#e07b12"  # blue and orange: apart for every kind of sight


def head_color(head: int) -> str:
    """The colour of a head on paper."""
    return LIGHT[head % len(LIGHT)]
