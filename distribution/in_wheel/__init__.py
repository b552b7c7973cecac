"""In a wheel: ``gcbench`` for an interpreter that has nothing but the packages on its path."""

from pathlib import Path

__path__ = [str(Path(__file__).parents[2])]
