"""A column of text, held in blocks: as a list of strings each would cost fifty bytes more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

BLOCK = 1024  # texts; one of them is found by splitting a block
END = "\0"  # which no text holds: `delimited.to_text` refuses it


class Texts(Sequence[str]):
    """Made once, read in order or here and there."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._blocks: list[str] = []
        self._last: list[str] = []
        for text in texts:
            self.append(text)

    def append(self, text: str) -> None:
        self._last.append(text)
        if len(self._last) == BLOCK:
            self._blocks.append(END.join(self._last))
            self._last = []

    def __len__(self) -> int:
        return BLOCK * len(self._blocks) + len(self._last)

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks:
            yield from block.split(END)
        yield from self._last

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[row] for row in range(len(self))[index]]
        block, place = divmod(range(len(self))[index], BLOCK)
        if block == len(self._blocks):
            return self._last[place]
        return self._blocks[block].split(END)[place]
