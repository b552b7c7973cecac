"""What cannot be joined with a run under load is refused, in one sentence, before the run."""

import time

import msgspec
import pytest
from runs import load
from scripted_server import ScriptedServer

from engines.openai.target import Target
from harness.cli.main import main
from harness.files import StoreError
from harness.load.probed_server import check_log
from harness.load.result import LoadResult
from harness.machine.boot import boot_id
from harness.probed.log_format import PROBE_SCHEMA, Head, encode_frame, head_line
from harness.probed.read_log import LogReader

HERE = Target("127.0.0.1", 8000)


def log(folder, boot=None, silent_seconds=0.0):
    path = folder / "pauses.log"
    read_ns = time.monotonic_ns() - int(silent_seconds * 1e9)
    head = Head(PROBE_SCHEMA, "CLOCK_MONOTONIC", boot or boot_id(), 1, 1, 1)
    path.write_bytes(head_line(head) + encode_frame(read_ns, 0, [], []))
    return path


def test_the_log_of_another_boot_is_refused(tmp_path):
    with pytest.raises(ValueError, match="on another machine or before a reboot"):
        check_log(LogReader(log(tmp_path, boot="0000")), HERE)


def test_a_server_on_another_host_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"192\.0\.2\.1 is not an address of this machine"):
        check_log(LogReader(log(tmp_path)), Target("192.0.2.1", 8000))


def test_a_log_whose_program_has_ended_is_refused(tmp_path):
    with pytest.raises(ValueError, match="its program has ended"):
        check_log(LogReader(log(tmp_path, silent_seconds=60)), HERE)


@pytest.mark.parametrize(
    "content", [b"", b"{}\n", b"nonsense\n", b"\xff\n", b'{"schema": "x"}\n', b"\0" * 9999]
)
def test_what_is_no_log_is_refused(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is no log of collections"):
        check_log(LogReader(path), HERE)


def test_a_log_that_is_not_there_is_refused_before_anything_is_asked(tmp_path, capsys):
    with ScriptedServer() as server:
        status = main(["load", server.url, "--probe", str(tmp_path / "none")])
        assert server.seen()["bodies"] == []
    assert status == 2
    assert "cannot be read: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--perfetto", "--image"])
def test_a_trace_and_a_picture_need_the_log(tmp_path, capsys, option):
    assert main(["load", "http://127.0.0.1:1", option, str(tmp_path / "t.png")]) == 2
    assert f"{option}: shows pauses beside gaps; give --probe FILE, too" in capsys.readouterr().err


def test_a_picture_is_a_png_or_an_svg(tmp_path, capsys):
    asked = ["load", "http://127.0.0.1:1", "--probe", "log", "--image", str(tmp_path / "t.gif")]
    assert main(asked) == 2
    assert "the name must end in .png or .svg" in capsys.readouterr().err


def test_where_no_gap_was_slow_there_is_no_picture_and_it_is_said(tmp_path, capsys):
    image = tmp_path / "stall.png"
    with ScriptedServer(gaps=[0.001]) as server:
        load(
            server.url,
            tmp_path,
            "--probe",
            str(log(tmp_path, silent_seconds=-600)),
            "--image",
            str(image),
            num_requests=1,
            output_lens=2,
            num_warmups=0,
        )
    assert not image.exists()
    assert "stall.png: not written, for no gap was slow" in capsys.readouterr().err


def test_a_run_is_shown_and_attributed_again(tmp_path, capsys):
    whole = log(tmp_path, silent_seconds=-600)
    kept, path = tmp_path / "run.npz", tmp_path / "again.json"
    with ScriptedServer(gaps=[0.001]) as server:
        ran = load(
            server.url,
            tmp_path,
            "--probe",
            str(whole),
            "--log",
            str(kept),
            num_requests=2,
            output_lens=3,
            num_warmups=0,
        )
    found = ran.result.attribution
    assert found is not None
    assert found.num_gaps == 4
    assert not any("of the run are not known" in note for note in ran.result.notes)
    assert main(["report", str(ran.folder)]) == 0
    shown = capsys.readouterr().out
    assert "Client processes" in shown
    assert "What made streams wait" in shown
    replay = ["load", "--replay", str(kept), "--quiet", "--json", str(path), "--probe"]
    main([*replay, str(whole)])
    assert msgspec.json.decode(path.read_bytes(), type=LoadResult).attribution == found
    main([*replay, str(log(tmp_path, silent_seconds=600))])
    again = msgspec.json.decode(path.read_bytes(), type=LoadResult)
    assert any("of the run are not known" in note for note in again.notes)
