"""A ``gh`` that stands for GitHub, to which there is no way from a test: it keeps the comments."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

_GH = """#!{python}
import json, pathlib, re, sys
place, words = pathlib.Path({place!r}), sys.argv[1:]
kept = json.loads(place.read_text())
if {refuses}:
    sys.exit("gh: Resource not accessible by integration (HTTP 403)")
method = words[words.index("--method") + 1] if "--method" in words else "GET"
body = next((pathlib.Path(each[6:]).read_text() for each in words if each[:6] == "body=@"), "")
(path,) = [each for each in words if each.startswith("repos/o/r/")]
path = path.removeprefix("repos/o/r/")
if found := re.fullmatch(r"commits/([0-9a-f]+)/pulls", path):
    number = kept["pulls"].get(found[1])
    print("" if number is None else number)
elif found := re.fullmatch(r"issues/(\\d+)/comments", path):
    if method == "POST":
        kept["comments"].append([int(found[1]), body])
    else:
        start = words[words.index("--jq") + 1].split('startswith("')[1].partition('")')[0]
        for n, (number, each) in enumerate(kept["comments"]):
            if number == int(found[1]) and each.startswith(start):
                print(n)
else:
    assert method == "PATCH"
    kept["comments"][int(path.removeprefix("issues/comments/"))][1] = body
place.write_text(json.dumps(kept))
"""


class FakeGitHub:
    """``pulls``: the pull request of a commit, by its hash."""

    def __init__(self, folder: Path, pulls: Mapping[str, int] = {}) -> None:
        self._gh = folder / "bin" / "gh"
        self._place = folder / "github.json"
        self._gh.parent.mkdir(parents=True)
        self._place.write_text(json.dumps({"comments": [], "pulls": dict(pulls)}))
        self.answers()

    @property
    def path(self) -> str:
        """The folder of ``gh``."""
        return str(self._gh.parent)

    @property
    def comments(self) -> list[tuple[int, str]]:
        """The pull request and the text of each."""
        return [(number, body) for number, body in json.loads(self._place.read_text())["comments"]]

    def answers(self, *, refuses: bool = False) -> None:
        """From now on, or refuses whatever it is asked."""
        self._gh.write_text(
            _GH.format(python=sys.executable, place=str(self._place), refuses=refuses)
        )
        self._gh.chmod(0o755)
