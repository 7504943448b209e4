"""The network: fixed measures of small frames, two small convolutions of single frames, and dilated ones over time."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

__all__ = ["CONTEXT", "OUTPUTS", "CutNetwork", "Measured", "Measures"]

LAGS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
SPANS = (4, 8, 16, 24, 32, 48)

OUTPUTS = ("hard", "jump", "inside", "dissolve", "fade", "wipe", "start", "end")
"""Answers for each frame: probabilities that it is the first one of a new shot, that such a cut is a jump, that it lies
in a gradual transition and of which kind; then the frames since the transition's first and until its last."""

_DILATIONS = (1, 2, 4, 8, 16, 1, 2, 4, 8, 16)

CONTEXT = sum(_DILATIONS) + SPANS[-1]
"""Frames before and after a frame that its answers depend on."""

# Contrast below this is noise, and so is a block's mean square below this; of 1.
_CONTRAST, _NOISE = 4 / 255, 1e-4

# Rows and columns up to which blocks are looked for in the other frame, and the distances of frames.
_DOWN, _ACROSS, _SEARCHED = 2, 3, (1, 3)
_BLOCK = 4


class Measured(NamedTuple):
    """What needs no training.

    Attributes:
        rows: [B, T, C] numbers of each frame.
        maps: [B, T, 4, 4, 8] how well blocks are found in earlier frames.
    """

    rows: torch.Tensor
    maps: torch.Tensor


def _earlier(values: torch.Tensor, *lags: int) -> torch.Tensor:
    """[B, T, L, ...]: ``values`` [B, T, ...] so many frames before, or after if negative; a film goes on with its first
    and last frame. All lags at once, because the time to open an exported network grows with its operations."""
    count = values.shape[1]
    rows = torch.arange(count, device=values.device)[:, None] - torch.tensor(lags, device=values.device)
    rows = rows.clamp(min=0)
    return values[:, torch.minimum(rows, torch.full_like(rows, count - 1))]


def _distances(views: torch.Tensor, lags: tuple[int, ...]) -> torch.Tensor:
    """[B, T, lags] Euclidean distances of views [B, T, D] to those of earlier frames."""
    return (views[:, :, None] - _earlier(views, *lags)).square().sum(3).sqrt()


def _shares(values: torch.Tensor, low: float, step: float, bins: int) -> torch.Tensor:
    """Square roots of soft histograms [..., bins] over the last dimension; values beyond the ends count at the ends."""
    places = ((values - low) / step).clamp(0, bins - 1)
    centers = torch.arange(bins, device=values.device, dtype=values.dtype)
    return (1 - (places[..., None] - centers).abs()).clamp(min=0).mean(-2).sqrt()


class Measures(nn.Module):
    """Measures of small frames that need no training.

    Distances to earlier frames of four views (structure, color, histograms, layout), brightness, how far a frame is a
    mixture of those around it, and how well its blocks are found in earlier frames.
    """

    def forward(self, luma: torch.Tensor, chroma: torch.Tensor) -> Measured:
        """Measure frames, luma [B, T, 32, 64] and chroma [B, T, 2, 16, 32] in 0..255."""
        batch, count = luma.shape[:2]
        fine, chroma = luma.float() / 255, chroma.float() / 255 - 0.5
        middle = functional.avg_pool2d(fine, 2)
        coarse = functional.avg_pool2d(chroma.flatten(1, 2), 2).reshape(batch, count, 2, 8, 16)
        mean = fine.mean((2, 3))
        contrast = (fine - mean[..., None, None]).square().mean((2, 3)).sqrt()
        scale = 1 / (contrast + _CONTRAST)
        structure = (fine - mean[..., None, None]) * scale[..., None, None]
        small = functional.avg_pool2d(structure, 2).flatten(2) / 512**0.5
        color = torch.cat([middle.flatten(2) / 512**0.5, coarse.flatten(2) / 256**0.5], 2)
        quarters = middle.reshape(batch, count, 2, 8, 2, 16).transpose(3, 4).reshape(batch, count, 4, 128)
        histogram = torch.cat(
            [
                _shares(quarters, 1 / 16, 1 / 8, 8).flatten(2) / 2,
                _shares(coarse.flatten(3), -0.22, 0.04, 12).flatten(2),
            ],
            2,
        )
        layout = functional.avg_pool2d(
            torch.cat([functional.avg_pool2d(middle, 2)[:, :, None], coarse], 2).flatten(1, 2), 2
        )
        layout = layout.reshape(batch, count, -1) / 32**0.5
        dark = (0.16 - fine).mul(100).clamp(0, 1).mean((2, 3))
        brightness = torch.stack([mean, 2 * contrast, fine.amax((2, 3)), dark], 2)
        found, maps = _search(middle, batch, count)
        rows = [
            _distances(structure.flatten(2) / 2048**0.5, (1, 2, 3)),
            *(_distances(view, LAGS) for view in (small, color, histogram, layout)),
            brightness,
            8 * (brightness - _earlier(brightness, 1)[:, :, 0]),
            _mixtures(middle, coarse),
            found,
        ]
        values = torch.cat(rows, 2)
        return Measured(values.sign() * torch.log1p(20 * values.abs()), maps)


def changes(luma: torch.Tensor, chroma: torch.Tensor) -> torch.Tensor:
    """[B T, 10, 16, 32] luma and chroma of frames, and how they change from the frame before and the fourth before."""
    fine, chroma = luma.float() / 255, chroma.float() / 255 - 0.5
    middle = functional.avg_pool2d(fine, 2)
    parts = [
        middle.flatten(0, 1)[:, None] - 0.5,
        chroma.flatten(0, 1),
        3 * functional.pixel_unshuffle((fine - _earlier(fine, 1)[:, :, 0]).flatten(0, 1)[:, None], 2),
        3 * (chroma - _earlier(chroma, 1)[:, :, 0]).flatten(0, 1),
        3 * (middle - _earlier(middle, 4)[:, :, 0]).flatten(0, 1)[:, None],
    ]
    return torch.cat(parts, 1)


def _search(middle: torch.Tensor, batch: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """How badly blocks are found: numbers of each frame, and maps."""
    frames = middle.flatten(0, 1)[:, None]
    own = functional.avg_pool2d(frames.square(), _BLOCK) - functional.avg_pool2d(frames, _BLOCK).square()
    down, across = 2 * _DOWN + 1, 2 * _ACROSS + 1
    # A channel for each shift of the other frame.
    shifts = torch.eye(down * across, device=middle.device).reshape(-1, 1, down, across)
    maps = []
    for lag in _SEARCHED:
        other = _earlier(middle, lag)[:, :, 0].flatten(0, 1)[:, None]
        wide = functional.pad(other, (_ACROSS, _ACROSS, _DOWN, _DOWN), mode="replicate")
        errors = functional.avg_pool2d((frames - functional.conv2d(wide, shifts)).square(), _BLOCK)
        still = errors[:, down * across // 2, None]
        maps += [((error + _NOISE) / (own + _NOISE)).log() / 4 for error in (errors.amin(1, keepdim=True), still)]
    stacked = torch.cat(maps, 1).clamp(-2, 2)
    numbers = torch.cat([stacked.mean((2, 3)), stacked.amax((2, 3)), stacked.amin((2, 3))], 1)
    return numbers.reshape(batch, count, -1), stacked.reshape(batch, count, *stacked.shape[1:])


def _mixtures(middle: torch.Tensor, coarse: torch.Tensor) -> torch.Tensor:
    """[B, T, 5 * spans], for each span: the distance of the frames around, the share of the later one in a frame, its
    deviation over cells, and what does not fit with one share and with one share in each cell."""
    small = functional.avg_pool2d(middle, 2)[:, :, None]
    frames = torch.cat([small, coarse], 2)

    def apart(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """[B, T, spans, 16] mean squares of differences in cells, as shares of that of the frame."""
        squares = (one - other).square().mean(3)
        return functional.avg_pool2d(squares.flatten(0, 1), (2, 4)).reshape(*squares.shape[:3], 16) / 16

    old, new = _earlier(frames, *SPANS), _earlier(frames, *(-span for span in SPANS))
    before, after, both = apart(frames[:, :, None], old), apart(frames[:, :, None], new), apart(old, new)
    shares = ((before + both - after + _NOISE / 16) / (2 * (both + _NOISE / 16))).clamp(0, 1)
    whole, total, rest = both.sum(3), before.sum(3), after.sum(3)
    share = ((total + whole - rest + _NOISE) / (2 * (whole + _NOISE))).clamp(0, 1)
    spread = ((both + _NOISE / 16) * (shares - share[..., None]).square()).sum(3) / (whole + _NOISE)
    misfit = total * (1 - share) + rest * share - share * (1 - share) * whole
    own = (before * (1 - shares) + after * shares - shares * (1 - shares) * both).clamp(min=0).sum(3)
    scale = whole.sqrt() + 0.02
    columns = whole.sqrt(), share, spread.sqrt(), misfit.clamp(min=0).sqrt() / scale, own.sqrt() / scale
    return torch.stack(columns, 3).flatten(2)


class CutNetwork(nn.Module):
    """Logits [B, T, 6] and logarithms of frames [B, T, 2], in the order of `OUTPUTS`, from small frames.

    Args:
        width: Channels over time.
    """

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.measures = Measures()
        self.step_layers = nn.ModuleList(
            [nn.Conv2d(10, 16, 3, 2, 1), nn.Conv2d(16, 32, 3, 2, 1), nn.Conv2d(36, 32, 3, 2, 1)]
        )
        self.step_leave = nn.Linear(256, 48)
        self.view_layers = nn.ModuleList([nn.Conv2d(3, 12, 3, 2, 1), nn.Conv2d(12, 16, 3, 2, 1)])
        self.view_leave = nn.Linear(512, 32)
        count = 3 + 4 * len(LAGS) + 8 + 5 * len(SPANS) + 3 * 2 * len(_SEARCHED)
        self.register_buffer("mean", torch.zeros(count))
        self.register_buffer("deviation", torch.ones(count))
        self.enter = nn.Conv1d(count + 48 + len(LAGS), width, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation) for dilation in _DILATIONS
        )
        self.leave = nn.Conv1d(width, len(OUTPUTS), 1)

    def forward(self, luma: torch.Tensor, chroma: torch.Tensor) -> torch.Tensor:
        """Logits and logarithms [B, T, 8] of frames, luma [B, T, 32, 64] and chroma [B, T, 2, 16, 32] in 0..255."""
        with torch.no_grad():
            measured = self.measures(luma, chroma)
        return self.answer(luma, chroma, measured)

    def probabilities(self, luma: torch.Tensor, chroma: torch.Tensor) -> torch.Tensor:
        """Answers [B, T, 8] in the order of `OUTPUTS` for frames as in `forward`."""
        raw = self(luma, chroma)
        return torch.cat([raw[..., :3].sigmoid(), raw[..., 3:6].softmax(-1), raw[..., 6:].clamp(0, 6).exp() - 1], -1)

    def answer(self, luma: torch.Tensor, chroma: torch.Tensor, measured: Measured) -> torch.Tensor:
        """Logits and logarithms [B, T, 8] of frames from what was measured of them."""
        batch, count = measured.rows.shape[:2]
        seen = changes(luma, chroma)
        first, second, third = self.step_layers
        steps = torch.cat([torch.relu(second(torch.relu(first(seen)))), measured.maps.flatten(0, 1)], 1)
        steps = torch.relu(self.step_leave(torch.relu(third(steps)).flatten(1))).reshape(batch, count, -1)
        views = seen[:, :3]
        for layer in self.view_layers:
            views = torch.relu(layer(views))
        views = functional.normalize(self.view_leave(views.flatten(1)), dim=1).reshape(batch, count, -1)
        likeness = (views[:, :, None] * _earlier(views, *LAGS)).sum(3)
        rows = (measured.rows - self._buffer("mean")) / self._buffer("deviation")
        values = torch.cat([rows.clamp(-6, 6), steps, 4 * (1 - likeness)], 2).transpose(1, 2)
        values = torch.relu(self.enter(values))
        for layer in self.layers:
            values = values + torch.relu(layer(values))
        answers: torch.Tensor = self.leave(values).transpose(1, 2)
        return answers

    def _buffer(self, name: str) -> torch.Tensor:
        buffer: Any = getattr(self, name)
        return torch.as_tensor(buffer)

    @torch.no_grad()
    def fit_scale(self, rows: torch.Tensor) -> None:
        """Take mean and deviation of the measures from these rows [N, C]."""
        self._buffer("mean").copy_(rows.mean(0))
        self._buffer("deviation").copy_(rows.std(0) + 0.05)
