"""What a commit or a file accepts: read between base and head alone, and used up to its amount."""

import subprocess

import pytest
from gate_results import cell, exact, result
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from scratch_repository import Repository, leave_git_alone
from small import CELL
from test_gate import EXACT, counted

from harness.metrics import METRICS
from harness.report.gate_waivers import accepted_words, trailer_lines, unused_words
from harness.tracking.gate.accepts_file import ACCEPTS_FILE
from harness.tracking.gate.exact_counts import exact_changes, judge_pairs, overall
from harness.tracking.gate.plan import pair
from harness.tracking.gate.result import GateCell
from harness.tracking.gate.trees import WORK_TREE
from harness.tracking.gate.used_waivers import used_waivers
from harness.tracking.gate.waivers import OUTPUTS, Waiver, read_waivers

PEAK, BYTECODES = "memory_peak_per_step", "bytecodes_per_request_step"
EACH = pair("cell", CELL, "base", "head", 0)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """With an engine on ``main``."""
    leave_git_alone(monkeypatch, tmp_path)
    made = Repository(tmp_path / "repo")
    made.commit("engines", engines__engine="1")
    made.git("tag", "base")
    return made


def entry(metric: str = PEAK, most: str = "+2 KiB", cell_id: str = "", reason: str = "why") -> str:
    lines = [f'metric = "{metric}"', f'reason = "{reason}"']
    lines += [f'most = "{most}"'] if most else []
    lines += [f'cell = "{cell_id}"'] if cell_id else []
    return "\n".join(["[[accepts]]", *lines, ""])


def accepted(repository: Repository, base: str = "base", head: str = "main") -> list[Waiver]:
    return read_waivers(repository.root, base, head, "engines")


def said(repository: Repository, base: str = "base", head: str = "main") -> list[tuple[str, float]]:
    return [(each.metric, each.most) for each in accepted(repository, base, head)]


def with_file(repository: Repository, text: str) -> Repository:
    (repository.root / ACCEPTS_FILE).write_text(text)
    return repository


def test_a_trailer_is_read_where_git_says_it_is_one(repository):
    repository.commit(f"Trade\n\nGate-accepts: {BYTECODES} +9 in the body alone.\n\nFixes: 1")
    assert said(repository) == []
    sha = repository.commit(
        f"Trade\n\nBody.\n\nGate-accepts: {PEAK} +2 KiB\nFixes: 1\ngate-accepts: {BYTECODES}\n +3 %"
    )
    peak, bytecodes = accepted(repository)
    assert (peak.metric, peak.most, peak.is_share) == (PEAK, 2048.0, False)
    assert (bytecodes.metric, bytecodes.most, bytecodes.is_share) == (BYTECODES, 0.03, True)
    assert {each.place for each in (peak, bytecodes)} == {f"commit {sha[:10]}"}
    assert {each.reason for each in (peak, bytecodes)} == {"Trade"}


def test_only_what_is_between_base_and_head_counts(repository):
    """A branch that main has been merged into, and one that is merged into main."""
    trailer = "\n\nGate-accepts: bytecodes_per_request_step +{}"
    repository.git("checkout", "--quiet", "-b", "branch")
    repository.commit("ours" + trailer.format(1), engines__ours="1")
    repository.git("checkout", "--quiet", "main")
    repository.commit("others" + trailer.format(2), engines__others="1")
    assert said(repository, "base", "main") == [(BYTECODES, 2.0)]
    assert said(repository, "main", "branch") == [(BYTECODES, 1.0)]
    repository.git("merge", "--quiet", "--no-ff", "branch", "--message", "merge")
    assert said(repository, "main^1", "main") == [(BYTECODES, 1.0)]
    assert said(repository, "main", "main") == []
    assert said(repository, "main", "base") == [], "what is older says nothing"


def test_an_entry_of_the_file_counts_until_it_is_merged(repository):
    with_file(repository, entry()).commit("Trade")
    repository.git("tag", "merged")
    assert said(repository) == [(PEAK, 2048.0)]
    assert said(repository, "merged") == []
    with_file(repository, entry() + entry(most="+3 KiB")).commit("Trade more")
    assert said(repository, "merged") == [(PEAK, 3072.0)]
    with_file(repository, 2 * entry()).commit("Trade the same again")
    assert said(repository, "merged") == [(PEAK, 2048.0)]
    repository.git("checkout", "--quiet", "-b", "branch", "base")
    repository.commit("Ours", engines__ours="1")
    assert said(repository, "main", "branch") == []


def test_the_work_tree_has_its_own_file_and_the_trailers_below_it(repository):
    repository.commit(f"Trade\n\nGate-accepts: {BYTECODES} +1")
    with_file(repository, entry(cell_id="lists · per_request", reason="rows stay"))
    assert said(repository) == [(BYTECODES, 1.0)]
    _, made = accepted(repository, head=WORK_TREE)
    assert (made.metric, made.cell) == (PEAK, "lists · per_request")
    assert (made.place, made.reason) == (ACCEPTS_FILE, "rows stay")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("memory_peak +2 KiB", ["'memory_peak' is no exact metric", PEAK]),
        ("host_time_per_step +2 %", ["is no exact metric"]),
        ("num_steps +2", ["is no exact metric"]),
        ("+2 KiB", ["'+2' is no exact metric"]),
        (PEAK, ["'' is not how much", f"{PEAK} +2 KiB or {PEAK} +3 %"]),
        (f"{PEAK} 2 KiB", ["'2 KiB' is not how much"]),
        (f"{PEAK} +2", ["'+2' is not how much"]),
        (f"{PEAK} -2 KiB", ["'-2 KiB' is not how much"]),
        (f"{PEAK} +2 KB", ["'+2 KB' is not how much"]),
        (f"{PEAK} +0 B", ["'+0 B' is not how much"]),
        (f"{BYTECODES} +2 B", ["'+2 B' is not how much", f"{BYTECODES} +5 or"]),
        (f"{BYTECODES} +nan", ["'+nan' is not how much"]),
        (f"{BYTECODES} +1e9", ["'+1e9' is not how much"]),
        ("prefix_cache_hit_rate +1 %", ["prefix_cache_hit_rate -5 or"]),
        ("outputs +1", ["'+1' after outputs", "leave it out"]),
    ],
)
def test_a_waiver_that_nobody_can_mean_is_one_sentence(repository, value, words):
    sha = repository.commit(f"Trade\n\nGate-accepts: {value}")
    with pytest.raises(ValueError, match=r"\Acommit [0-9a-f]{10}: ") as error:
        accepted(repository)
    assert str(error.value).startswith(f"commit {sha[:10]}: ")
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[accepts]\n", "cannot be read"),
        ("[[accept]]\n", "cannot be read: Object contains unknown field `accept`"),
        (entry() + 'whole = "no"\n', "unknown field `whole`"),
        ('[[accepts]]\nmetric = "outputs"\n', "missing required field `reason`"),
        (entry() + entry(reason=" "), "accepts number 2: has no reason"),
        (entry(metric="memory"), "accepts number 1: 'memory' is no exact metric"),
        ("#" * 2**20 + entry(), "larger than 1,048,576 bytes"),
        ("x" + ".x" * 100_000 + " = 1", "a key of more than 32 parts"),
    ],
)
def test_a_file_that_nobody_can_mean_is_one_sentence(repository, text, words):
    with_file(repository, text)
    for head in (WORK_TREE, "main"):
        with pytest.raises(ValueError, match=ACCEPTS_FILE) as error:
            accepted(repository, head=head if head == WORK_TREE else repository.commit("Trade"))
        assert words in str(error.value)
        assert "\n" not in str(error.value)


def test_a_file_in_the_base_that_cannot_be_read_is_no_obstacle(repository):
    with_file(repository, "[[accepts]\n").commit("Break it")
    repository.git("tag", "broken")
    with_file(repository, entry()).commit("Mend it")
    assert said(repository, "broken") == [(PEAK, 2048.0)]


def test_names_that_are_no_utf_8_do_not_get_into_a_result(repository):
    message = b"Trade \xff\x1b[2J\n\nGate-accepts: outputs\n"
    subprocess.run(
        ["git", "-C", repository.root, "commit", "--quiet", "--allow-empty", "--file", "-"],
        input=message,
        check=True,
    )
    (made,) = accepted(repository)
    assert made.reason.isprintable()
    made.reason.encode()


def waiver(metric: str, most: float, *, is_share: bool = False, cell_id: str = "") -> Waiver:
    return Waiver(
        metric=metric,
        most=most,
        is_share=is_share,
        cell=cell_id,
        place="commit 0123456789",
        reason="Trade",
    )


SIZES = st.floats(0, 3_000)
AMOUNTS = st.lists(st.tuples(st.floats(0, 2_000), st.booleans()), max_size=3)


@example(PEAK, 0.0, 513.0, [(0.0, False), (1.0, False)])
@given(st.sampled_from([PEAK, BYTECODES, "leaked_objects_per_step"]), SIZES, SIZES, AMOUNTS)
def test_a_loss_is_accepted_up_to_the_sum_of_what_is_said_and_no_further(
    metric, before, after, amounts
):
    """The oracle: base with all that is accepted, and head held against that by the floors."""
    waivers = [
        waiver(metric, most / 1_000 if is_share else most, is_share=is_share)
        for most, is_share in amounts
    ]
    trials = counted([EACH], {metric: after}, EXACT | {metric: before})
    found = {change.metric: change for change in exact_changes(trials, EACH, waivers).changes}
    change = found[metric]
    sizes = [each.most * before if each.is_share else each.most for each in waivers]
    differs = METRICS[metric].differs
    is_beyond = after > before + sum(sizes) and differs(before, after - sum(sizes))
    expected = (
        "same"
        if not differs(before, after)
        else "better"
        if after < before
        else "worse"
        if is_beyond or not sum(sizes)
        else "accepted"
    )
    assert change.verdict == expected
    (made,) = judge_pairs([EACH], trials, None, {}, str, waivers=waivers).cells
    uses = used_waivers(waivers, [made])
    needed = expected in ("worse", "accepted")
    total = min(after - before, sum(sizes)) if needed else 0.0
    assert sum(each.used for each in uses) == pytest.approx(total, abs=1e-6)
    assert all(each.used <= size * (1 + 1e-9) for each, size in zip(uses, sizes, strict=True))
    assert all(bool(each.cells) == bool(each.used) for each in uses)


LOSS = {PEAK: 2_000.0}
GAIN = {BYTECODES: 90.0}
BASE = EXACT | {PEAK: 1_000.0}


def judged(after: dict[str, float], *waivers: Waiver) -> GateCell:
    (made,) = judge_pairs(
        [EACH], counted([EACH], after, BASE), None, {}, str, waivers=waivers
    ).cells
    return made


@pytest.mark.parametrize(
    ("after", "waivers", "verdict"),
    [
        (LOSS, [], "worse"),
        (LOSS | GAIN, [], "trade"),
        (LOSS | {"gc_collections_gen2": 1.0}, [], "worse"),
        (LOSS, [(PEAK, 1_000)], "accepted"),
        (LOSS | GAIN, [(PEAK, 1_000)], "accepted"),
        (LOSS | GAIN, [(PEAK, 400), (PEAK, 600)], "accepted"),
        (LOSS | GAIN, [(PEAK, 400)], "trade"),
        (LOSS, [(PEAK, 400)], "worse"),
        (LOSS | GAIN, [(BYTECODES, 1_000)], "trade"),
        (LOSS | {BYTECODES: 140.0}, [(PEAK, 1_000)], "worse"),
        (GAIN, [(PEAK, 1_000)], "better"),
        ({}, [(PEAK, 1_000)], "same"),
    ],
)
def test_both_ways_is_a_trade_until_somebody_accepts_the_loss(after, waivers, verdict):
    base = BASE | {"gc_collections_gen2": 9.0}
    trials = counted([EACH], after, base)
    said = [waiver(metric, most) for metric, most in waivers]
    (made,) = judge_pairs([EACH], trials, None, {}, str, waivers=said).cells
    assert made.verdict == verdict
    assert overall([made]) == verdict
    assert overall([made], ["a cell"]) == (
        verdict if verdict in ("trade", "worse") else "incomplete"
    )


def test_a_waiver_of_a_cell_is_for_that_cell_alone():
    here, elsewhere = (waiver(PEAK, 1_000, cell_id=name) for name in ("cell", "other cell"))
    assert judged(LOSS, here).verdict == "accepted"
    assert judged(LOSS, elsewhere).verdict == "worse"


def test_other_outputs_are_judged_where_that_is_accepted_and_are_never_the_same_or_better():
    trials = counted([EACH], GAIN, BASE)
    key = ("counts", EACH.head)
    trials.counted[key] = replace(trials.counted[key], tokens_sha256="other")
    refused = judge_pairs([EACH], trials, None, {}, str, waivers=[waiver(PEAK, 1.0)])
    assert refused.cells == []
    assert "Gate-accepts: outputs in the commit's message accepts it." in refused.missing[0]
    said = [waiver(OUTPUTS, 0.0)]
    found = judge_pairs([EACH], trials, None, {}, str, waivers=said)
    (made,) = found.cells
    assert (found.missing, made.verdict, made.other_outputs) == ([], "accepted", "tokens")
    assert [change.metric for change in made.exact if change.verdict == "better"] == [BYTECODES]
    (use,) = used_waivers(said, [made])
    assert use.cells == ["cell"]
    assert used_waivers(said, [judged({})])[0].cells == []


def test_what_is_pasted_from_the_report_accepts_the_trade():
    """Rounded up, however the figures fall."""
    changes = exact(**{BYTECODES: 90.0, PEAK: 2_000.4, "allocations_per_add": 7.8333333})
    of = result([cell("a", "trade", changes)])
    lines = [line.removeprefix("Gate-accepts: ") for line in trailer_lines(of)]
    assert lines == ["allocations_per_add +0.84", f"{PEAK} +1901 B"]
    assert trailer_lines(result([cell("a", "worse", changes)])) == []


def test_a_waiver_that_nothing_needed_is_said_unless_something_is_missing():
    of = result([judged({})])
    waivers = used_waivers([waiver(PEAK, 0.03, is_share=True)], of.cells)
    of = replace(of, waivers=waivers)
    said = '3 % at a step\'s peak, by commit 0123456789 ("Trade")'
    assert (accepted_words(of), unused_words(of)) == ([], [said])
    assert unused_words(replace(of, missing=["another cell"])) == []
