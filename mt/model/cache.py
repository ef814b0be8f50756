"""Cache of a decoder: the keys and values of the source and of the target tokens so far."""

import torch
from torch import Tensor, nn

BLOCK = 32  # columns that are allocated together, so that most steps need no allocation


class DecoderCache:
    """Keys and values for B sentences with K beams each: R = B x K rows. Row r belongs to sentence r // K.

    Shapes: L layers, H heads, d_k values per head, S source length, C columns. A column holds one token of each row.

    Self-attention uses buffers `[C, L, R, H, d_k]`. The columns come first, so that the columns in use are contiguous.
    All rows write to the same column, `length`. The tokens of a sentence begin at column `starts[sentence]`, which is
    larger if the sentence joined later. In this example, sentence 1 joined after sentence 0 had written 3 tokens, and
    then both sentences wrote one token:

        column      0 1 2 3 | 4 = length: the column of the next tokens
        sentence 0  x x x x |     start 0, position 4
        sentence 1  . . . x |     start 3, position 1

    Cross-attention uses keys and values `[B, H, S, d_k]` in each layer. The beams of a sentence share them.
    """

    def __init__(
        self,
        keys: Tensor,
        cross: list[tuple[Tensor, Tensor]],
        memory_mask: Tensor,
        beams: int,
    ) -> None:
        """Create a cache without target tokens.

        Args:
            keys: An empty tensor [0, L, R, H, d_k] with the dtype and the device of the buffers.
            cross: The cross-attention keys and values of each layer, each [B, H, S, d_k].
            memory_mask: The mask of the source [B, 1, 1, S], True on tokens.
            beams: The number K of rows per sentence.
        """
        self.beams = beams
        self.cross = cross
        self.memory_mask = memory_mask  # [B, 1, 1, S]
        self.length = 0
        self.starts = [0] * (keys.shape[2] // beams)
        self._buffers = [keys, keys.clone()]  # keys, values
        self._spares = [keys.clone(), keys.clone()]  # `reorder` copies into the spares and swaps them with the buffers
        self._describe_rows()

    @property
    def sentences(self) -> int:
        return len(self.starts)

    @property
    def rows(self) -> int:
        return self.sentences * self.beams

    def _describe_rows(self) -> None:
        """Compute `_row_starts` from `starts`: None if all are 0.

        This runs when sentences join or leave, not at each step.
        """
        self._row_starts: Tensor | None = None
        if any(self.starts):
            starts = torch.tensor(self.starts, device=self._buffers[0].device)
            self._row_starts = starts.repeat_interleave(self.beams)  # [R]

    def positions(self, limit: int) -> Tensor:
        """Return the position in its sentence, counted from 0, of the token that each row writes next: [R, 1].

        The rows of a finished sentence continue until the sentence is dropped. Their positions stay below `limit`.
        """
        if self._row_starts is None:
            return torch.full((self.rows, 1), min(self.length, limit - 1), device=self._buffers[0].device)
        return (self.length - self._row_starts).clamp(max=limit - 1).unsqueeze(1)

    def mask(self) -> Tensor | None:
        """Return the attention mask of the rows, bool [R, 1, 1, length + 1]; None if they may attend to all columns."""
        if self._row_starts is None:
            return None
        columns = torch.arange(self.length + 1, device=self._row_starts.device)
        return (columns >= self._row_starts.unsqueeze(1))[:, None, None, :]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write the newest keys and values of a layer, each [R, H, 1, d_k].

        Returns all keys and values of the layer so far, each [R, H, length + 1, d_k].
        """
        if self.length == self._buffers[0].shape[0]:
            self._grow()
        written = []
        for buffer, new in zip(self._buffers, (keys, values), strict=True):
            buffer[self.length, layer] = new.squeeze(2)
            written.append(buffer[: self.length + 1, layer].permute(1, 2, 0, 3))
        return written[0], written[1]

    def advance(self) -> None:
        """Go to the next column. Call this after `append` was called for every layer."""
        self.length += 1

    def reorder(self, rows: Tensor) -> None:
        """Replace the contents of each row r by those of row rows[r], a row of the same sentence. `rows` is [R]."""
        if self._spares[0].shape != self._buffers[0].shape:
            self._spares = [torch.zeros_like(buffer) for buffer in self._buffers]
        for buffer, spare in zip(self._buffers, self._spares, strict=True):
            torch.index_select(buffer[: self.length], 2, rows, out=spare[: self.length])
        self._buffers, self._spares = self._spares, self._buffers

    def select(self, sentences: Tensor) -> None:
        """Keep only the sentences with these indices [B'], in this order, with all their beams.

        Drop columns not used any more.
        """
        kept = sentences.tolist()
        first = min((self.starts[sentence] for sentence in kept), default=0)
        rows = (sentences.unsqueeze(1) * self.beams + torch.arange(self.beams, device=sentences.device)).flatten()
        self._buffers = [buffer[first : self.length].index_select(2, rows) for buffer in self._buffers]
        self.length -= first
        self.starts = [self.starts[sentence] - first for sentence in kept]
        self.cross = [(k.index_select(0, sentences), v.index_select(0, sentences)) for k, v in self.cross]
        self.memory_mask = self.memory_mask.index_select(0, sentences)
        longest = int(self.memory_mask.sum(-1).max()) if kept else 0
        self.memory_mask = self.memory_mask[..., :longest]
        self.cross = [(k[:, :, :longest], v[:, :, :longest]) for k, v in self.cross]
        self._describe_rows()

    def extend(self, other: "DecoderCache") -> None:
        """Append the sentences of `other`, which may have another length. `other` must not be used afterwards."""
        assert self.beams == other.beams, f"{self.beams} and {other.beams} beams per sentence cannot share a cache"
        length = max(self.length, other.length)
        self._buffers = [
            torch.cat((_shift(mine, self.length, length), _shift(theirs, other.length, length)), dim=2)
            for mine, theirs in zip(self._buffers, other._buffers, strict=True)
        ]
        self.starts = [start + length - self.length for start in self.starts] + [
            start + length - other.length for start in other.starts
        ]
        self.length = length
        width = max(self.memory_mask.shape[-1], other.memory_mask.shape[-1])
        self.memory_mask = torch.cat((_pad(self.memory_mask, width, -1), _pad(other.memory_mask, width, -1)))
        self.cross = [
            (
                torch.cat((_pad(mine[0], width, -2), _pad(theirs[0], width, -2))),
                torch.cat((_pad(mine[1], width, -2), _pad(theirs[1], width, -2))),
            )
            for mine, theirs in zip(self.cross, other.cross, strict=True)
        ]
        self._describe_rows()

    def _grow(self) -> None:
        shape = (self.length + BLOCK, *self._buffers[0].shape[1:])
        for index, buffer in enumerate(self._buffers):
            grown = buffer.new_zeros(shape)
            grown[: self.length] = buffer[: self.length]
            self._buffers[index] = grown


def _shift(buffer: Tensor, length: int, to: int) -> Tensor:
    """Return the first `length` columns of `buffer`, padded with columns of zeros at the front to `to` columns."""
    used = buffer[:length]
    return torch.cat((used.new_zeros(to - length, *used.shape[1:]), used)) if to > length else used


def _pad(x: Tensor, width: int, dim: int) -> Tensor:
    """Pad dimension `dim` of `x`, counted from the end, to `width` entries, with zeros or False at the end."""
    return nn.functional.pad(x, [0, 0] * (-1 - dim) + [0, width - x.shape[dim]])
