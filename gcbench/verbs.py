"""``gcbench.compare`` and the other verbs: found when one is asked for, as they load a lot."""

VERBS = (
    "advise",
    "bisect",
    "compare",
    "compare_call",
    "describe",
    "explain",
    "gate",
    "noise",
    "read_result",
    "releases",
    "run",
)


def __getattr__(name: str) -> object:
    """A verb. Raises AttributeError for anything else."""
    if name not in VERBS:
        raise AttributeError(f"module 'gcbench' has no attribute {name!r}")
    import sys
    from importlib import import_module

    from gcbench.code_root import code_root

    if (root := str(code_root())) not in sys.path:
        sys.path.insert(0, root)
    verb: object = getattr(import_module("harness.verbs.api"), name)
    return verb


def __dir__() -> list[str]:
    return [*globals(), *VERBS]
