"""Whether text ends within a character, for many texts at once."""

import numpy as np
from numpy.typing import NDArray

from engines.protocol import BoolArray


def ends_complete(tails: NDArray[np.uint8]) -> BoolArray:
    """Whether text with these last four bytes, uint8 ``[n, 4]``, does not decode to a last U+FFFD.

    Zeros stand before a text that is shorter. Well-formed sequences as in the Unicode Standard,
    table 3-7; U+FFFD itself, EF BF BD, counts as incomplete.
    """
    fourth, third, second, last = tails.T
    goes_on = (tails & 0xC0) == 0x80
    two = (second >= 0xC2) & (second <= 0xDF)
    three = ((third & 0xF0) == 0xE0) & goes_on[:, 2]
    three &= (third != 0xE0) | (second >= 0xA0)
    three &= (third != 0xED) | (second <= 0x9F)
    three &= (third != 0xEF) | (second != 0xBF) | (last != 0xBD)
    four = (fourth >= 0xF0) & (fourth <= 0xF4) & goes_on[:, 1] & goes_on[:, 2]
    four &= (fourth != 0xF0) | (third >= 0x90)
    four &= (fourth != 0xF4) | (third <= 0x8F)
    complete: BoolArray = (last < 0x80) | (goes_on[:, 3] & (two | three | four))
    return complete
