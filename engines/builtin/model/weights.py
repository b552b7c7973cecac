"""A model's weights, whole or a rank's share of each: from safetensors, or random."""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from engines.builtin.model.config import ModelSource
from engines.regular_file import open_regular, read_regular

TensorPart = tuple[int, int, int]
"""(dimension, rank, size). A share is ceil(length / size) long, the last ones filled with zeros."""

_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_MOST_BYTES = 2**40
_STD = 0.02
_FLOATING = {"F64", "F32", "F16", "BF16"}


def cut(whole: Tensor, part: TensorPart) -> Tensor:
    """A rank's share: a view of ``whole``, or a copy where zeros had to be added."""
    dimension = part[0]
    begin, end = _bounds(whole.shape[dimension], part)
    return _filled(whole.narrow(dimension, begin, end - begin), whole.shape[dimension], part)


def _bounds(length: int, part: TensorPart) -> tuple[int, int]:
    _, rank, size = part
    share = -(-length // size)
    return min(rank * share, length), min((rank + 1) * share, length)


def _filled(piece: Tensor, length: int, part: TensorPart) -> Tensor:
    dimension, _, size = part
    shape = list(piece.shape)
    shape[dimension] = -(-length // size) - shape[dimension]
    return torch.cat([piece, piece.new_zeros(shape)], dimension) if shape[dimension] else piece


class Weights:
    """Gives a source's tensors by their Hugging Face names, on the device, in the dtype.

    Raises ValueError where the files of a folder cannot be read.
    """

    def __init__(
        self, source: ModelSource, device: torch.device, dtype: torch.dtype, seed: int
    ) -> None:
        self._device, self._dtype, self._seed = device, dtype, seed
        self._files = None if source.folder is None else _Files(source.folder)

    def take(self, name: str, shape: tuple[int, ...], *, part: TensorPart | None = None) -> Tensor:
        """The tensor, or only the share that ``part`` means; ``shape`` is the whole one's.

        Raises ValueError where a folder has no such tensor or one of another shape.
        """
        if self._files is not None:
            return self._files.read(name, shape, part).to(self._device, self._dtype)
        whole = self._draw(name, shape)
        # A view would keep the whole alive.
        return whole if part is None or part[2] == 1 else cut(whole, part).clone()

    def _draw(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Drawn whole whatever the part, so that the ranks together have what one rank would."""
        whole = torch.empty(shape, dtype=self._dtype, device=self._device)
        if name.endswith(".bias"):
            return whole.zero_()
        if "norm" in name:
            return whole.fill_(1)
        # Seed and name in 32 bits: torch's generator for the CPU reads no more of a seed.
        seed = zlib.crc32(name.encode(), self._seed % 2**32)
        generator = torch.Generator(self._device).manual_seed(seed)
        return whole.normal_(0, _STD, generator=generator)


class _Files:
    """The safetensors of a folder, opened but not read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: dict[str, tuple[Path, Any]] = {}
        for path in _paths(folder):
            try:
                with open_regular(path, _MOST_BYTES):  # a pipe would be waited for
                    file: Any = safe_open(path, framework="pt")
                self._places |= dict.fromkeys(file.keys(), (path, file))
            except (OSError, SafetensorError) as error:
                raise ValueError(
                    f"model weights {path}: not a whole safetensors file ({error}); fetch it again"
                ) from None

    def read(self, name: str, shape: Sequence[int], part: TensorPart | None) -> Tensor:
        # Checkpoints of a base model, OPT's among them, have names without the prefix.
        stored = name if name in self._places else name.removeprefix("model.")
        if stored not in self._places:
            raise ValueError(
                f"model weights {self._folder}: no tensor {name} in {', '.join(self._names())}; "
                "give a folder whose weights are of its config.json"
            )
        path, file = self._places[stored]
        data = file.get_slice(stored)
        if list(data.get_shape()) != list(shape) or data.get_dtype() not in _FLOATING:
            raise ValueError(
                f"model weights {path}: {stored} is {data.get_dtype()} {data.get_shape()}, where "
                f"config.json means floats {list(shape)}; give a folder whose weights are of its "
                "config.json"
            )
        part = part or (0, 0, 1)
        begin, end = _bounds(shape[part[0]], part)
        piece: Tensor = data[(*(slice(None),) * part[0], slice(begin, end))]
        return _filled(piece, shape[part[0]], part)

    def _names(self) -> list[str]:
        return sorted({path.name for path, _ in self._places.values()})


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


def _paths(folder: Path) -> list[Path]:
    """The one file, or the shards that the index names. A shard may be a link, as all of them are
    in Hugging Face's cache, but a name that leads out of the folder is none that a model has.
    """
    index = folder / _INDEX
    if (folder / _SINGLE).is_file() or not index.is_file():
        return [folder / _SINGLE]
    try:
        names = msgspec.json.decode(read_regular(index), type=_Index).weight_map.values()
    except (OSError, UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise ValueError(
            f"model weights {index}: not an index as transformers writes it ({error}); fetch it "
            "again"
        ) from None
    for name in names:
        if Path(name).name != name or name in ("", "..") or "\0" in name:
            raise ValueError(
                f"model weights {index}: {name[:60]!r} is not the name of a file beside it; fetch "
                "the index again"
            )
    return [folder / name for name in sorted(set(names))]
