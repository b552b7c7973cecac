"""The parts of what crosses between scheduler and workers, told by the names of fields.

They are the things of which vLLM #6241 says that they are sent again and again.
"""

from collections.abc import Mapping

PARTS = ("parameters", "prompt", "output_ids", "names", "rest")

_PART_OF = {
    "(names)": "names",
    "sampling_params": "parameters",
    "prompt_token_ids": "prompt",
    "token_ids": "prompt",  # and what was sampled before a preemption
    "output_token_ids": "output_ids",
    "output_token": "output_ids",
    "sampled": "output_ids",
    "sampled_token_ids": "output_ids",
    "new_token_ids": "output_ids",
    "all_token_ids": "output_ids",
}
"""The part of a field, of whatever message."""


def message_parts(fields: Mapping[str, int]) -> dict[str, int]:
    """Bytes of each part, of bytes by the path of the field; the sum is the same.

    A path is of the part of the first name in it that says one.
    """
    found = dict.fromkeys(PARTS, 0)
    for path, num_bytes in fields.items():
        said = (_PART_OF[name] for name in path.split(".") if name in _PART_OF)
        found[next(said, "rest")] += num_bytes
    return found
