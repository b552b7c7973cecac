"""``gcbench list``: each part by its name and what its module says of itself."""

import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from harness.cli.main import main


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ('"""In columns.\n\nAnd more.\n"""\nimport torch.nothing\n', "In columns."),
        ("", ""),
        ("def (", "elsewhere_shape cannot be read: invalid syntax"),
        (None, "elsewhere_shape is not there"),
    ],
    ids=["words", "none", "broken", "absent"],
)
def test_a_part_that_a_package_adds_is_listed_whatever_it_says(
    tmp_path, monkeypatch, capsys, source, says
):
    if source is not None:
        (tmp_path / "elsewhere_shape.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    points = EntryPoints([EntryPoint("shape", "elsewhere_shape:Shape", "g")])
    monkeypatch.setattr("engines.registry.entry_points", lambda group: points)
    assert main(["list", "representations"]) == 0
    rows = capsys.readouterr().out.splitlines()
    (row,) = (row.strip() for row in rows if row.strip().startswith("shape"))
    assert row.removeprefix("shape").strip().startswith(says)
    assert "elsewhere_shape" not in sys.modules


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["metrics", "tpot_median"], ["metric", "tpot_median"]),
        (["policy", "freeze"], ["collector policy", "freeze"]),
    ],
)
def test_one_of_a_kind_is_listed_by_its_name(capsys, words, lines):
    assert main(["list", *words]) == 0
    rows = [row for row in capsys.readouterr().out.splitlines() if not row.startswith(" " * 4)]
    assert [row.split("  ")[0 if not row.startswith(" ") else 1].strip() for row in rows] == lines


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["metrics", "tpot_medan"], "none of the metrics is 'tpot_medan'; did you mean "),
        (["wires", "--seed", "3"], "--seed: is of a workload; name one, as in gcbench list"),
        (["workloads", "--json", "-"], "--json: is of a workload; name one, as in gcbench list"),
        (["--mooncake", "a.jsonl"], "--mooncake: is of a workload; name one, as in gcbench list"),
    ],
)
def test_what_cannot_be_listed_is_refused_in_a_sentence(capsys, words, sentence):
    assert main(["list", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"gcbench: {sentence}")
    assert len(said.err.splitlines()) == 1


def test_nothing_is_imported_to_be_listed(fresh_interpreter):
    seen = fresh_interpreter(
        "import json, sys\n"
        "from contextlib import redirect_stdout\n"
        "from io import StringIO\n"
        "from harness.cli.main import main\n"
        "with redirect_stdout(out := StringIO()):\n"
        "    status = main(['list'])\n"
        "print(json.dumps([status, 'torch' in sys.modules, out.getvalue()]))\n"
    )
    status, has_torch, said = seen
    assert (status, has_torch) == (0, False)
    assert "list[list[int]]" in said
    assert "cannot be read" not in said
    assert "is not there" not in said


def test_settings_of_a_file_are_refused_where_flags_are(capsys, tmp_path):
    path = tmp_path / "asked.toml"
    path.write_text("seed = 3")
    assert main(["list", "wires", f"@{path}"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.startswith("gcbench: --seed: is of a workload; ")) == ("", True)
