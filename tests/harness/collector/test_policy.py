"""The grammar of ``--gc``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.collector.policy import DEFAULT_THRESHOLDS, ROLES, initial_thresholds, parse_policy

numbers = st.integers(0, 2**31 - 1).map(str)
thresholds = st.builds(
    lambda first, rest: ":".join(["threshold", "/".join([str(first), *rest])]),
    st.integers(1, 2**31 - 1),
    st.lists(numbers, max_size=2),
)
on_wait = st.one_of(st.just("on_wait"), numbers.map("on_wait:{}".format))
ways = st.one_of(st.sampled_from(["disabled", "batch_threshold"]), thresholds, on_wait)
one_process = st.one_of(
    st.sampled_from([["as_is"], ["default"], ["freeze"]]),
    ways.map(lambda way: [way]),
    ways.map(lambda way: [way, "freeze"]),
)
policies = st.one_of(
    one_process.map("+".join),
    st.dictionaries(st.sampled_from(ROLES), one_process, min_size=1).map(
        lambda by_role: "+".join(f"{p}@{role}" for role, parts in by_role.items() for p in parts)
    ),
)


@given(policies)
def test_the_canonical_text_reads_back_as_the_same_policy(text: str) -> None:
    policy = parse_policy(text)
    assert parse_policy(str(policy)) == policy
    for role in ROLES:
        assert parse_policy(str(policy.for_role(role))) == policy.for_role(role)


@given(policies, st.randoms(use_true_random=False))
def test_order_does_not_matter(text: str, random) -> None:
    pieces = text.split("+")
    random.shuffle(pieces)
    assert parse_policy("+".join(pieces)) == parse_policy(text)


@given(st.text(alphabet="adefhilnorstuw_:/+@0159 ", max_size=30))
def test_any_text_is_a_policy_or_a_one_sentence_value_error(text: str) -> None:
    try:
        parse_policy(text)
    except ValueError as error:
        message = str(error)
    else:
        return
    assert message.endswith((".", "?"))
    assert "\n" not in message
    assert repr(text) in message


@pytest.mark.parametrize(
    ("text", "role", "expected"),
    [
        ("freeze+threshold:50000/20/20", "engine", "freeze+threshold:50000/20/20"),
        ("threshold:50000/20/20+freeze", "client", "freeze+threshold:50000/20/20"),
        ("freeze+disabled@client", "client", "disabled+freeze"),
        ("freeze+disabled@client", "engine", "freeze"),
        ("freeze@engine", "worker", "default"),
        ("disabled@worker", "worker3", "disabled"),
        ("on_wait:1000", "engine", "on_wait"),
        ("on_wait:0", "engine", "on_wait:0"),
    ],
)
def test_for_role(text: str, role: str, expected: str) -> None:
    assert str(parse_policy(text).for_role(role)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("disabled+threshold:700", "'disabled' and 'threshold:700' in .* cannot both hold"),
        ("disabled+on_wait", "'disabled' and 'on_wait' in .* cannot both hold"),
        ("threshold:9+batch_threshold", "cannot both hold"),
        ("on_wait+threshold:9", "cannot both hold"),
        ("as_is+freeze", "'as_is' and 'freeze' in .* cannot both hold"),
        ("default+freeze", "cannot both hold"),
        ("freeze+freeze", "'freeze' and 'freeze' in .* cannot both hold in the engine process"),
        ("freeze+freeze@client", "cannot both hold in the client process"),
        ("default+disabled@worker", "cannot both hold in the worker process"),
        ("freze", "no collector policy 'freze' .* did you mean freeze"),
        ("zzz", "no collector policy 'zzz' .* did you mean as_is, default"),
        ("", "no collector policy ''"),
        ("freeze+", "no collector policy ''"),
        ("freeze@wroker", "no role 'wroker' .* did you mean worker"),
        ("freeze@", "no role ''"),
        ("threshold", "'threshold' in .* takes one to three numbers, not 0"),
        ("threshold:1/2/3/4", "takes one to three numbers, not 4"),
        ("freeze:1", "takes no number, not 1"),
        ("on_wait:1/2", "takes at most one number, not 2"),
        ("threshold:0", "'0' .* whole number from 1 .*'disabled' switches the collector off"),
        ("threshold:7e2", "'7e2' in .* is not a whole number from 1"),
        ("threshold:700/-1", "'-1' in .* is not a whole number from 0"),
        ("on_wait:", "'' in .* is not a whole number from 0"),
        ("threshold:2147483648", "not a whole number"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_policy(text)


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="no role 'scheduler'"):
        parse_policy("freeze").for_role("scheduler")


def test_parts_for_different_roles_do_not_contradict_each_other() -> None:
    policy = parse_policy("disabled@client+threshold:9@engine+as_is@worker")
    assert {role: str(policy.for_role(role)) for role in ROLES} == {
        "engine": "threshold:9",
        "worker": "as_is",
        "output": "default",
        "frontend": "default",
        "client": "disabled",
    }


def test_the_default_thresholds_are_those_of_a_fresh_interpreter(fresh_interpreter) -> None:
    script = "import gc, json; print(json.dumps(gc.get_threshold()))"
    assert tuple(fresh_interpreter(script)) == DEFAULT_THRESHOLDS


@pytest.mark.parametrize(
    ("version", "thresholds"),
    [
        ((3, 11, 9), (700, 10, 10)),
        ((3, 12, 0), (700, 10, 10)),
        ((3, 13, 9), (2000, 10, 10)),
        ((3, 14, 4), (2000, 10, 0)),
        ((3, 14, 5), (2000, 10, 10)),
        ((3, 15, 2), (2000, 10, 10)),
    ],
)
def test_the_default_thresholds_of_a_version(version, thresholds) -> None:
    assert initial_thresholds(version) == thresholds


def test_the_default_thresholds_survive_a_library_that_set_others(fresh_interpreter) -> None:
    script = (
        "import gc, json; gc.set_threshold(1, 2, 3)\n"
        "from harness.collector.policy import DEFAULT_THRESHOLDS as d; print(json.dumps(d))"
    )
    assert tuple(fresh_interpreter(script)) == DEFAULT_THRESHOLDS
