"""Put a built site beside those of other versions: `python docs/site/versions.py NEW PAGES REF`.

`dev` is the main branch; a tag `v1.2.3` becomes `1.2.3`, and `stable` if it is the highest. The
list in versions.json fills the menu of every page. Uses the standard library alone.
"""

import json
import re
import shutil
import sys
from pathlib import Path

VERSION = re.compile(r"\d+\.\d+\.\d+")
REDIRECT = (
    '<!doctype html><meta http-equiv="refresh" content="0; url={0}/"><a href="{0}/">{0}</a>\n'
)


def publish(new: Path, pages: Path, ref: str) -> list[str]:
    """Copy the site to its folder and list all versions, newest first."""
    name = ref.removeprefix("v") if VERSION.fullmatch(ref.removeprefix("v")) else "dev"
    _replace(new, pages / name)
    numbers = sorted(filter(VERSION.fullmatch, _folders(pages)), key=_key, reverse=True)
    if numbers and numbers[0] == name:
        _replace(new, pages / "stable")
    listed = [each for each in ("stable", "dev") if (pages / each).exists()] + numbers
    (pages / "versions.json").write_text(json.dumps(listed), encoding="utf-8")
    (pages / "index.html").write_text(REDIRECT.format(listed[0]), encoding="utf-8")
    (pages / ".nojekyll").touch()
    return listed


def _replace(new: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(new, folder)


def _folders(pages: Path) -> list[str]:
    return [folder.name for folder in pages.iterdir() if folder.is_dir()]


def _key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


if __name__ == "__main__":
    print(publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
