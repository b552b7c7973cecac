"""Which releases are supported, and what an archive may write."""

import io
import tarfile
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from engines.prepared.cache import ReleaseError
from engines.prepared.unpack import unpack_archive
from engines.release_names import is_range
from engines.vllm.releases import VLLM

RELEASES = st.builds("{}.{}.{}".format, st.just(0), st.integers(11, 40), st.integers(0, 3))


@given(st.sets(RELEASES, min_size=1), RELEASES)
def test_a_release_is_known_or_its_neighbours_are_named(known, asked):
    if asked in known:
        assert VLLM.check_version(asked, sorted(known)) == asked
        return
    below = [each for each in known if Version(each) < Version(asked)]
    above = [each for each in known if Version(each) > Version(asked)]
    with pytest.raises(ReleaseError) as caught:
        VLLM.check_version(asked, sorted(known))
    nearest = str(caught.value).partition("did you mean ")[2].partition("?")[0].split(", ")
    if below:
        assert max(below, key=Version) in nearest
    if above:
        assert min(above, key=Version) in nearest
    assert set(nearest) <= known
    assert nearest == sorted(nearest, key=Version)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("0.11", "0.11.0"),
        ("v0.11.2", "0.11.2"),
        ("0.12.0.post1", "0.12.0.post1"),
        ("1", "1.0.0"),
        (VLLM.project.oldest, VLLM.project.oldest),
        (VLLM.PINNED, VLLM.PINNED),
        ("0.11.0.1", "0.11.0.1"),
    ],
)
def test_a_version_is_spelled_as_on_the_index(text, spelled):
    assert VLLM.check_version(text) == spelled
    assert VLLM.check_version(text, [spelled]) == spelled


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0.10.1.1", "is too old"),
        ("0.10.2rc1", "is not a final release"),
        ("0.11.0.dev3", "is not a final release"),
        ("0.11.0+cpu", "is not a final release"),
        ("", "is neither a release"),
    ],
)
@pytest.mark.parametrize("known", [[], ["0.9.0", "0.10.2rc1", "0.33.0"]])
def test_what_is_not_supported_is_refused(text, why, known):
    newest = "0.33.0" if known else f"{VLLM.PINNED} and what newer ones the package index has"
    with pytest.raises(ReleaseError, match=why) as caught:
        VLLM.check_version(text, known)
    assert f"supported are {VLLM.project.oldest} to {newest}" in str(caught.value)


KNOWN = ["0.9.2", "0.11.2", "0.10.0", "0.11.0", "0.10.1.1", "0.12.0", "0.10.1", "1.0.0"]


@pytest.mark.parametrize(
    ("text", "last_patches", "releases"),
    [
        ("0.10.1..0.11.0", False, ["0.10.1", "0.10.1.1", "0.11.0"]),
        ("0.10.1..0.11.2", True, ["0.10.1.1", "0.11.2"]),
        ("0.11..0.11.9", False, ["0.11.0", "0.11.2"]),
        ("0.11.1..", False, ["0.11.2", "0.12.0", "1.0.0"]),
        ("..0.10.0", False, ["0.10.0"]),
        ("all", True, ["0.10.1.1", "0.11.2", "0.12.0", "1.0.0"]),
    ],
)
def test_a_range_is_the_releases_in_it(text, last_patches, releases):
    assert is_range(text)
    assert VLLM.within(text, KNOWN, last_patches=last_patches) == releases


@pytest.mark.parametrize(
    ("text", "words"),
    [("0.12.0..0.11.0", "holds no release"), ("2..", "1.0.0"), ("0.11..newest", "'newest' is no")],
)
def test_a_range_that_is_none_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        VLLM.within(text, KNOWN)


def test_a_version_or_a_path_is_no_range():
    assert not any(map(is_range, ["0.11.2", "../vllm", "/src/vllm", "newest"]))


PARTS = st.sampled_from(["..", ".", "", "vllm", "a.py", "vllm-1.dist-info", "METADATA", "PKG-INFO"])


@given(
    st.lists(
        st.tuples(
            st.lists(PARTS, min_size=1, max_size=5).map("/".join),
            st.sampled_from([tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE]),
        ),
        max_size=6,
    )
)
def test_no_archive_writes_outside_of_its_folder(members):
    with TemporaryDirectory() as name:
        root = Path(name)
        (root / "a.py").write_text("mine")
        archive = root / "vllm-1.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            for path, kind in [*members, ("top/vllm/__init__.py", tarfile.REGTYPE)]:
                member = tarfile.TarInfo(path)
                member.type, member.linkname = kind, "../../a.py"
                member.size = 4 if kind == tarfile.REGTYPE else 0
                tar.addfile(member, io.BytesIO(b"evil"))
        before = set(root.rglob("*"))
        # A member that is a file and a folder is refused by the file system.
        with suppress(OSError):
            unpack_archive(VLLM.project, archive, "1", root / "layer")
        layer = root / "layer"
        assert {p for p in root.rglob("*") if layer not in (p, *p.parents)} == before
        assert (root / "a.py").read_text() == "mine"
        assert all(
            p.is_dir() or p.suffix == ".py" or p.name == "METADATA" for p in layer.rglob("*")
        )
        assert not any(path.is_symlink() for path in root.rglob("*"))
