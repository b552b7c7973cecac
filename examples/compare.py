"""Does freezing the heap pay on the host path? Run a comparison, read its verdict, draw it."""

import sys
from pathlib import Path

import gcbench

asked = {
    "device": "null",
    "representation": "list_of_lists",
    "delivery": "per_request",
    "gc": ["default", "freeze"],
    "num_requests": 1024,
    "rounds": 7,
}
asked |= dict(word.split("=") for word in sys.argv[1:])  # such as rounds=3
result = gcbench.compare(**asked)
(comparison,) = result.comparisons
low, high = comparison.ci95
print(f"{comparison.candidate} is {comparison.verdict}: ×{comparison.ratio:.3f}")
print(f"the 95 % interval: {low:.3f} to {high:.3f}")
picture = gcbench.describe(result).pictures[0]
Path("compare.png").write_bytes(picture.draw(".png"))
