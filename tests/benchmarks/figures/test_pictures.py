"""A picture says of what it was made, and shows the same for it."""

import io

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures.pictures import made_of, stamped


def png(colour: tuple[int, int, int]) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (3, 2), colour).save(file, "png")
    return file.getvalue()


@given(st.tuples(*[st.integers(0, 255)] * 3), st.text("0123456789abcdef"))
def test_a_stamped_picture_is_the_same_picture(colour, text):
    from PIL import Image

    plain = png(colour)
    marked = stamped(plain, text)
    assert made_of(plain) == ""
    assert made_of(marked) == text
    with Image.open(io.BytesIO(plain)) as before, Image.open(io.BytesIO(marked)) as after:
        after.load()  # checks each chunk's sum
        assert after.tobytes() == before.tobytes()
        assert after.text == {"gcbench.made_of": text}
