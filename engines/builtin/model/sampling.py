"""What ``--axis sampling`` says: greedy, or a temperature and perhaps top-k and top-p."""

from engines.protocol import Sampling


def parse_sampling(text: str) -> Sampling:
    """Read "greedy", "0.8", "0.8:50" or "0.8:50:0.9". Raises ValueError for anything else."""
    if text == "greedy":
        return Sampling()
    parts = text.split(":")
    try:
        temperature = float(parts[0])
        top_k = int(parts[1]) if len(parts) > 1 else 0
        top_p = float(parts[2]) if len(parts) > 2 else 1.0
    except ValueError:
        raise ValueError(_wrong(text)) from None
    if len(parts) > 3 or not 0 <= temperature < 100 or top_k < 0 or not 0 < top_p <= 1:
        raise ValueError(_wrong(text))
    return Sampling(temperature, top_k, top_p)


def _wrong(text: str) -> str:
    return (
        f"--axis sampling={text}: must be greedy or TEMPERATURE[:TOP_K[:TOP_P]], such as "
        "0.8:50:0.9, "
        "with a temperature from 0, top-k from 0 (all) and top-p up to 1"
    )
