"""An engine that runs otherwise than it was asked to is refused."""

import pytest

from engines.protocol import EngineState
from harness.trial.ready import read_back


class Overridden:
    """Somebody else's engine, of which a platform has changed some switches."""

    def __init__(self, **found):
        self.found = found

    def read_back(self) -> EngineState:
        asked = {"output_processing": "overlapped", "enable_prefix_caching": False, "worker": "uni"}
        return EngineState(asked | {"scheduler": "AsyncScheduler"} | self.found, asked)


def test_what_is_as_asked_is_recorded_with_what_nobody_asked_for():
    assert read_back(Overridden(), "theirs") == {
        "output_processing": "overlapped",
        "enable_prefix_caching": False,
        "worker": "uni",
        "scheduler": "AsyncScheduler",
    }
    assert read_back(Overridden(scheduler="Another"), "theirs")["scheduler"] == "Another"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"output_processing": "inline"}, "output_processing is inline, not overlapped;"),
        ({"enable_prefix_caching": True}, "enable_prefix_caching is True, not False;"),
        (
            {"output_processing": "inline", "worker": "mp"},
            "output_processing is inline, not overlapped, worker is mp, not uni;",
        ),
    ],
)
def test_each_switch_that_is_not_as_asked_is_named(found, words):
    with pytest.raises(ValueError, match="does not run as asked") as raised:
        read_back(Overridden(**found), "theirs")
    assert f"engine theirs does not run as asked: {words}" in str(raised.value)
