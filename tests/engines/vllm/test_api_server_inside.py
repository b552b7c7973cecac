"""What vLLM's command line is given in the place of a configuration."""

from engines.vllm.api_server_inside import flags


def test_fields_become_flags_of_their_kinds():
    given = {
        "model": "m",
        "enforce_eager": True,
        "skip_tokenizer_init": False,
        "max_num_seqs": 8,
        "additional_config": {"a": [1, None]},
    }
    assert flags(given) == [
        "--model",
        "m",
        "--enforce-eager",
        "--no-skip-tokenizer-init",
        "--max-num-seqs",
        "8",
        "--additional-config",
        '{"a": [1, null]}',
    ]
