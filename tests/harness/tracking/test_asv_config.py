"""asv.conf.json: the results it names; a key that nobody knows is said and ends nothing."""

import json
import re
from pathlib import Path

import pytest

from harness.tracking.asv.config import KEYS, asv_results_folder, read_config, unknown_keys


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
    assert asv_results_folder(path) == path.parent / "kept/asv"
    assert asv_results_folder(conf('{"version": 1}')) == path.parent / "results"


@pytest.mark.parametrize(
    ("key", "near"),
    [("result_dir", "results_dir"), ("python", "pythons"), ("enviroment_type", "environment_type")],
)
def test_an_unknown_key_is_passed_on_with_a_sentence_that_names_the_nearest(conf, key, near):
    path = conf(json.dumps({"version": 1, "repo": "/here", key: 1}))
    assert read_config(path) == {"repo": "/here", key: 1}
    assert unknown_keys(path) == [
        f"{path} has the key {key!r}, which asv 0.6.6 does not know: gcbench ignores it; the "
        f"nearest that both know is {near!r}."
    ]


def test_known_keys_need_no_sentence(conf):
    assert unknown_keys(conf(json.dumps({"version": 1} | dict.fromkeys(KEYS, "x")))) == []


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
        asv_results_folder(conf(text))
