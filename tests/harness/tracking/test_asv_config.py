"""asv.conf.json: the results it names; a key that asv would pass over is refused."""

import json
import re
from pathlib import Path

import pytest

from harness.tracking.asv.config import KEYS, read_config, results_folder


@pytest.fixture
def conf(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "asv.conf.json"
        path.write_text(text)
        return path

    return write


def test_the_keys_are_those_that_asv_reads():
    config = pytest.importorskip("asv.config")
    sources = [path.read_text() for path in Path(config.__file__).parent.rglob("*.py")]
    asked_for = re.findall(r"getattr\(conf, '(\w+)'", "".join(sources))
    renamed = re.findall(r"'(\w+)' in d:", Path(config.__file__).read_text())
    assert config.Config().__dict__.keys() | {*asked_for, *renamed} == KEYS


def test_the_folder_is_the_one_that_is_named_from_where_the_file_lies(conf):
    path = conf('{"version": 1, // asv\'s\n "repo": ".", "results_dir": "kept/asv",}')
    assert results_folder(path) == path.parent / "kept/asv"
    assert results_folder(conf('{"version": 1}')) == path.parent / "results"


@pytest.mark.parametrize(
    ("key", "near"),
    [("result_dir", "results_dir"), ("python", "pythons"), ("enviroment_type", "environment_type")],
)
def test_an_unknown_key_is_refused_with_the_nearest_known(conf, key, near):
    with pytest.raises(ValueError, match=f"'{key}'.*'{near}'") as caught:
        read_config(conf(json.dumps({"version": 1, key: 1})))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"version": 2}', "format 2"),
        ('{"repo": "."}', "no version"),
        ('{"version": 1, ', "cut short"),
        ('{"version": 1, "results_dir": ["a"]}', "results_dir is \\['a'\\]"),
    ],
)
def test_what_is_no_configuration_is_one_sentence(conf, text, says):
    with pytest.raises(ValueError, match=says):
        results_folder(conf(text))
