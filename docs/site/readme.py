"""Make the links of a README absolute, so that they work on the page of a package index.

python -m docs.site.readme README.md
"""

import re
import sys
from pathlib import Path

from docs.site.stage import repository

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def absolute(text: str, address: str) -> str:
    """Links lead to the repository at `address`, pictures come from it."""

    def target(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}[{found[2]}]({address}/{kind}/main/{found[3]})"

    return LINK.sub(target, text)


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(absolute(file.read_text(encoding="utf-8"), repository()), encoding="utf-8")
