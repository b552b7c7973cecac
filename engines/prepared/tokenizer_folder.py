"""A tokenizer as transformers reads one: a folder with what goes with a ``tokenizer.json``."""

import json
import shutil
from pathlib import Path

from engines.vocabulary import SHIPPED_TOKENIZER


def make_tokenizer_folder(folder: Path, tokenizer: str) -> None:
    """Make it, of a ``tokenizer.json``; "" is the shipped one."""
    folder.mkdir()
    shutil.copyfile(tokenizer or SHIPPED_TOKENIZER, folder / "tokenizer.json")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps({"model_type": "opt"}))  # else asked for twice
