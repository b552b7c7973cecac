"""What several of the engines' tests read."""

import pytest
from tokenizer_files import write_all


@pytest.fixture(scope="session")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tokenizers of every kind, by their names in `tokenizer_files`."""
    return write_all(tmp_path_factory.mktemp("tokenizers"))
