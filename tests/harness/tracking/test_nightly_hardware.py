"""Under which name a machine's figures are kept, and what asv is told of it."""

import json
import os

import pytest

from harness.tracking.nightly.hardware import KnownMachine, tell_asv, this_machine

pytest.importorskip("asv")

HARDWARE = {
    "machine": "host",
    "os": "Linux 6.1",
    "arch": "x86_64",
    "cpu": "EPYC 9654",
    "num_cpu": "8",
    "ram": "16000000",
}


@pytest.fixture(autouse=True)
def known(monkeypatch, tmp_path):
    """What asv finds on this machine, to be changed by a test; and a home of the test's own."""
    from asv.machine import Machine as AsvMachine

    found = dict(HARDWARE)
    monkeypatch.setattr(AsvMachine, "get_defaults", staticmethod(lambda: dict(found)))
    monkeypatch.setenv("HOME", str(tmp_path))
    return found


def record(results, machine: KnownMachine) -> None:
    """As asv keeps a machine beside its results."""
    (results / machine.name).mkdir(parents=True)
    (results / machine.name / "machine.json").write_text(
        json.dumps({**machine.hardware, "version": 1})
    )


def test_a_machine_is_called_as_it_calls_itself_or_as_asked(tmp_path):
    assert this_machine(tmp_path) == KnownMachine("host", HARDWARE)
    named = this_machine(tmp_path, "runner")
    assert (named.name, named.hardware["machine"], named.note) == ("runner", "runner", "")


@pytest.mark.parametrize("name", ["a/b", "..", ".", ".hidden", "/", "a/"])
def test_what_would_lead_out_of_the_results_is_no_name(tmp_path, name):
    with pytest.raises(ValueError, match="--machine"):
        this_machine(tmp_path, name)


@pytest.mark.parametrize(
    ("field", "other"),
    [("cpu", "EPYC 9754"), ("num_cpu", "16"), ("arch", "arm64"), ("ram", "16900000")],
)
def test_other_hardware_gets_a_name_of_its_own_and_is_said_once(tmp_path, known, field, other):
    record(tmp_path, this_machine(tmp_path))
    known[field] = other
    changed = this_machine(tmp_path)
    assert changed.name.startswith("host-")
    assert changed.hardware == HARDWARE | {"machine": changed.name, field: other}
    assert f"{field} {HARDWARE[field]} → {other}" in changed.note
    record(tmp_path, changed)
    assert this_machine(tmp_path) == changed._replace(note="")
    known[field] = HARDWARE[field]
    assert this_machine(tmp_path).name == "host"


def test_what_is_not_hardware_and_a_little_memory_change_nothing(tmp_path, known):
    record(tmp_path, this_machine(tmp_path))
    known |= {"os": "Linux 6.12", "ram": "15300000"}
    assert this_machine(tmp_path).name == "host"


@pytest.mark.parametrize(("ram", "is_same"), [("16800000", True), ("16800001", False)])
def test_memory_is_the_same_up_to_a_twentieth(tmp_path, known, ram, is_same):
    record(tmp_path, this_machine(tmp_path))
    known["ram"] = ram
    assert (this_machine(tmp_path).name == "host") == is_same


def test_a_changed_machine_keeps_its_new_name_with_a_little_more_memory(tmp_path, known):
    record(tmp_path, this_machine(tmp_path))
    known |= {"cpu": "EPYC 9754", "ram": "32449000"}
    changed = this_machine(tmp_path)
    record(tmp_path, changed)
    for ram in ("32449000", "32451000", "31500000", "33500000"):
        known["ram"] = ram
        assert this_machine(tmp_path).name == changed.name


@pytest.mark.parametrize("content", ["{", "[]", '{"version": 1}', '{"version": 9}'])
def test_a_record_that_says_nothing_differs_from_nothing(tmp_path, content):
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "machine.json").write_text(content)
    assert this_machine(tmp_path).name == "host"


def entries(home) -> dict[str, object]:
    return json.loads((home / ".asv-machine.json").read_text())


def test_asv_is_told_of_this_machine_and_forgets_no_other(tmp_path):
    other = {"machine": "laptop", "cpu": "M4"}
    (tmp_path / ".asv-machine.json").write_text(json.dumps({"laptop": other, "version": 1}))
    machine = this_machine(tmp_path / "results", "box")
    tell_asv(machine)
    assert entries(tmp_path) == {"laptop": other, "box": machine.hardware, "version": 1}
    there = (tmp_path / ".asv-machine.json").stat()
    tell_asv(machine)
    assert os.path.samestat((tmp_path / ".asv-machine.json").stat(), there), "written for nothing"


@pytest.mark.parametrize("content", [None, "", '{"laptop": {"mach', '{"version": 7}'])
def test_a_broken_file_of_machines_is_put_aside_and_written_anew(tmp_path, content):
    path = tmp_path / ".asv-machine.json"
    if content is not None:
        path.write_text(content)
    machine = this_machine(tmp_path / "results", "box")
    tell_asv(machine)
    assert entries(tmp_path) == {"box": machine.hardware, "version": 1}
    aside = list(tmp_path.glob(".asv-machine.json.unreadable*"))
    assert [each.read_text() for each in aside] == ([] if content is None else [content])


def test_what_we_write_is_what_asv_reads(tmp_path):
    from asv.machine import Machine as AsvMachine
    from asv.machine import MachineCollection

    machine = this_machine(tmp_path / "results", "<box>")
    tell_asv(machine)
    assert MachineCollection.load("<box>") == machine.hardware
    assert AsvMachine.load(machine_name="<box>").cpu == HARDWARE["cpu"]
