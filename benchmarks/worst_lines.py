"""Do a few lines of vLLM make most of the objects for which the collector runs?

The author of vLLM #26368 expects `tracemalloc` to find the code to begin with. `gcbench explain
--by collections` asks it of a release that has been prepared; here is what its first lines hold.

    python -m benchmarks.worst_lines 0.11.0

The last line of output is one JSON document.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.collector.sites import CollectionSites
from harness.explain.result import ExplainResult, SitesBody
from harness.files import StoreError
from harness.machine.describe import code_identity
from harness.report.kinds import read_result

_ROOT = Path(__file__).parents[1]
FIRST = 10


def sites_of(release: str) -> CollectionSites:
    """The lines, those with the largest share first."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "explain.json"
        command = f"explain --by collections --engine vllm-hostpath --release {release}"
        words = [*command.split(), "--gc", "default", "--output-lens", "60", "--json", str(path)]
        subprocess.run(
            [sys.executable, "-m", "harness", *words],
            cwd=_ROOT,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        result = read_result(path)
    if not isinstance(result, ExplainResult) or not isinstance(result.body, SitesBody):
        raise StoreError(f"gcbench {command} has not told of lines")
    return result.body.found


def main() -> None:
    """Ask each release that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("releases", nargs="+", metavar="RELEASE")
    found = {}
    for release in parser.parse_args().releases:
        sites = sites_of(release)
        share = sum(each.share for each in sites.sites[:FIRST])
        found[release] = {
            "collections": sum(sites.collections),
            "lines": len(sites.sites),
            "share of the first ten": share,
        }
        print(f"{release:>8}  {len(sites.sites)} lines, the first {FIRST} hold {share:.1%}")
    print(json.dumps({"code_commit": code_identity(_ROOT)[1], **found}))


if __name__ == "__main__":
    main()
