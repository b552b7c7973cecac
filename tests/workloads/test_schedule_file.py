import errno
import os
import re

import numpy as np
import pytest

from workloads.schedule import Schedule

FIELDS = (
    "prompt_lens",
    "output_lens",
    "arrival_seconds",
    "num_accepted",
    "priorities",
    "previous_turn",
    "segment_counts",
    "segment_streams",
    "segment_lens",
)
SETTINGS = (
    "name",
    "max_concurrency",
    "token_seed",
    "stop_token_ids",
    "retain",
    "bad_rows",
    "min_tokens",
    "ignore_eos",
    "stop",
)


@pytest.fixture(params=["plain", "rich"])
def schedule(request):
    rich = {
        "priorities": [2, -1, 0],
        "previous_turn": [-1, 0, -1],
        "segment_counts": [1, 2, 1],
        "segment_streams": [0, 2**32 + 5, 0, 2],
        "segment_lens": [3, 4, 1, 2],
        "min_tokens": 3,
        "ignore_eos": False,
        "stop": ("\n\n", "ende ü"),
    }
    return Schedule(
        name="small – ü",
        prompt_lens=[3, 5, 2],
        output_lens=[4, 1, 9],
        arrival_seconds=[0.0, 0.1, 0.5],
        max_concurrency=2,
        num_accepted=[1, 2, 4],
        token_seed=2**63 - 1,
        stop_token_ids=(2, 50256),
        retain="finish",
        bad_rows=7,
        **(rich if request.param == "rich" else {}),
    )


@pytest.fixture
def saved(schedule, tmp_path):
    schedule.save(tmp_path / "schedule.npz")
    return tmp_path / "schedule.npz"


def test_what_is_saved_comes_back(schedule, saved):
    loaded = Schedule.load(str(saved))
    assert loaded.sha256 == schedule.sha256
    for name in SETTINGS:
        assert getattr(loaded, name) == getattr(schedule, name)
    for name in FIELDS:
        assert getattr(loaded, name).dtype == getattr(schedule, name).dtype
        assert getattr(loaded, name).tolist() == getattr(schedule, name).tolist()


def test_saving_replaces_and_leaves_nothing_beside(schedule, saved):
    schedule.head(1).save(saved)
    assert Schedule.load(saved).num_requests == 1
    assert list(saved.parent.iterdir()) == [saved]


def test_a_save_that_fails_leaves_the_old_file_whole(schedule, saved, monkeypatch):
    def no_space(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        schedule.head(1).save(saved)
    assert Schedule.load(saved).sha256 == schedule.sha256
    assert list(saved.parent.iterdir()) == [saved]


def test_a_disk_that_is_full_is_named_by_the_file(schedule, saved, no_file_above):
    with no_file_above(100), pytest.raises(OSError, match=re.escape(str(saved))):
        schedule.save(saved)


def test_a_truncated_file_is_refused_wherever_it_ends(saved):
    whole = saved.read_bytes()
    for length in range(0, len(whole), 7):
        saved.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"schedule\.npz: .*anew"):
            Schedule.load(saved)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # NumPy may warn of a header before it refuses it
@pytest.mark.parametrize("schedule", ["rich"], indirect=True)
def test_a_flipped_byte_is_refused_or_was_no_content(schedule, saved):
    whole = saved.read_bytes()
    refused = 0
    for place in range(0, len(whole), 2):
        saved.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            loaded = Schedule.load(saved)
        except ValueError:
            refused += 1
        else:
            assert (loaded.sha256, loaded.name) == (schedule.sha256, schedule.name)
    assert refused > len(whole) / 4


def test_foreign_files_are_refused(saved):
    saved.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n")
    with pytest.raises(ValueError, match="damaged or not a schedule"):
        Schedule.load(saved)
    with saved.open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(ValueError, match="damaged or not a schedule"):
        Schedule.load(saved)
    np.savez(saved, prompt_lens=np.arange(3))
    with pytest.raises(ValueError, match="damaged or not a schedule"):
        Schedule.load(saved)
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        Schedule.load(saved.with_name("absent.npz"))


def test_content_that_was_changed_on_purpose_is_refused(saved):
    with np.load(saved) as archive:
        members = dict(archive)
    np.savez(saved, **(members | {"output_lens": members["output_lens"] + 1}))
    with pytest.raises(ValueError, match="does not match its hash"):
        Schedule.load(saved)


def test_another_format_is_named(saved):
    with np.load(saved) as archive:
        members = dict(archive)
    header = members["header"].tobytes().replace(b"gcbench.schedule/1", b"gcbench.schedule/9")
    np.savez(saved, **(members | {"header": np.frombuffer(header, np.uint8)}))
    with pytest.raises(ValueError, match=r"gcbench\.schedule/1, found 'gcbench\.schedule/9'"):
        Schedule.load(saved)
