"""`gcbench load --http-cost`: what does not belong to it is refused before anything is served."""

import pytest

from harness.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--http-cost", "http://localhost:8000"], "--http-cost serves the engine itself"),
        (["--http-cost", "--model", "m"], "--model: says nothing with --http-cost"),
        (["--http-cost", "--axis", "wirez=a"], "wirez: no such flag or axis here; did you"),
        (["--http-cost", "--axis", "gc"], "--axis gc: must be NAME=VALUE"),
        (["--http-cost", "--axis", "batch-size=many"], "must be whole numbers"),
        (["--http-cost", "--axis", "engine=vllm"], "engine: no such flag or axis here"),
        (["--http-cost", "--axis", "gc=freeze", "--axis", "gc=default"], "--axis gc: given twice"),
        (["--http-cost", "--burstiness", "2"], "--burstiness: is of --request-rate"),
        (["http://localhost:8000", "--rounds", "3"], "--rounds: is of --http-cost"),
    ],
)
def test_a_mistake_is_a_sentence_and_leaves_nothing(arguments, says, tmp_path, capsys):
    assert main(["load", *arguments, "--output", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert not (tmp_path / "runs").exists()
