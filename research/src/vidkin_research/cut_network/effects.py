"""What sequences go through that is no transition: lights, dips, titles, and the look of a whole film."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from vidkin.shots.network import SMALL
from vidkin_research.cut_network.pieces import Piece

__all__ = ["dip", "grade", "light", "title"]

Small = NDArray[np.float32]


def light(piece: Piece, random: np.random.Generator) -> Piece:
    """The piece under lights whose place, color and strength change at once, which is no transition."""
    if random.random() < 0.4:
        return _colored(piece, random)
    height, width = SMALL
    rows, columns = ((np.arange(side, dtype=np.float32) + 0.5) / side for side in SMALL)
    luma, chroma = piece.luma.astype(np.float32), piece.chroma.astype(np.float32)
    first = 0
    while first < len(piece):
        end = min(len(piece), first + int(np.exp(random.uniform(np.log(4), np.log(80)))))
        if random.random() < 0.85:
            down, across = random.uniform(0, 1, 2)
            apart = (rows[:, None] - down) ** 2 / 4 + (columns - across) ** 2
            spot = np.exp(-apart / random.uniform(0.1, 0.6) ** 2)
            gain = (random.uniform(0.15, 0.9) + random.uniform(0, 1.0) * spot).astype(np.float32)
            small = gain.reshape(height // 2, 2, width // 2, 2).mean((1, 3))
            color = random.uniform(-45, 45, (2, 1, 1)).astype(np.float32) * float(random.random() < 0.8)
            luma[first:end] *= gain
            shown = piece.luma[first:end].reshape(-1, height // 2, 2, width // 2, 2).mean((2, 4)) / 255
            chroma[first:end] = 128 + (chroma[first:end] - 128 + color * shown[:, None].astype(np.float32)) * small
        first = end
    return Piece(_whole(luma), _whole(chroma), piece.joins)


def _colored(piece: Piece, random: np.random.Generator) -> Piece:
    """The piece with a stretch in which colored lights blink: the color of whole frames changes in turns."""
    luma, chroma = piece.luma.astype(np.float32), piece.chroma.astype(np.float32)
    first = int(random.integers(0, max(1, len(piece) - 20)))
    end = min(len(piece), first + int(random.integers(16, 160)))
    states = [
        (
            random.uniform(0.5, 1.0, (2, 1, 1)) * (random.random((2, 1, 1)) < 0.75),
            random.uniform(40, 215, (2, 1, 1)),
            float(random.choice([1.0, random.uniform(0.6, 1.2)])),
        )
        for _ in range(int(random.integers(1, 5)))
    ]
    # Without color in one of the turns, or never.
    states += [(np.zeros((2, 1, 1)), np.full((2, 1, 1), 128.0), 1.0)] * int(len(states) == 1 or random.random() < 0.3)
    period, is_even, number = int(random.integers(2, 16)), random.random() < 0.6, 0
    while first < end:
        last = min(end, first + (period if is_even else int(random.integers(2, 30))))
        share, color, gain = states[number % len(states)]
        chroma[first:last] += (color - chroma[first:last]) * share
        luma[first:last] *= gain
        first, number = last, number + 1
    return Piece(_whole(luma), _whole(chroma), piece.joins)


def title(piece: Piece, random: np.random.Generator) -> Piece:
    """The piece with text, bands and badges that come and go over its frames, which is no transition."""
    luma, chroma = piece.luma.astype(np.float32), piece.chroma.astype(np.float32)
    place = int(random.integers(0, 40))
    while place < len(piece) - 6:
        layers = _layers(random)
        count = min(len(piece) - place, int(np.exp(random.uniform(np.log(6), np.log(150)))))
        edge = int(0 if random.random() < 0.35 else random.integers(1, 16))
        way = str(random.choice(["fade", "reveal", "pass"], p=[0.6, 0.2, 0.2]))
        for number in range(count):
            part = min(1.0, (number + 1) / (edge + 1), (count - number) / (edge + 1))
            for mask, value, color in layers:
                if way == "pass":
                    shown = np.roll(mask, SMALL[1] - round(SMALL[1] * (number + 1) / (count + 1)), 1)
                else:
                    shown = mask * part if way == "fade" else mask * (np.arange(SMALL[1]) < part * SMALL[1])
                small = shown.reshape(SMALL[0] // 2, 2, SMALL[1] // 2, 2).mean((1, 3))
                luma[place + number] += (value - luma[place + number]) * shown
                chroma[place + number] += (color - chroma[place + number]) * small
        place += count + int(random.integers(4, 80))
    return Piece(_whole(luma), _whole(chroma), piece.joins)


def _layers(random: np.random.Generator) -> list[tuple[Small, float, NDArray[np.float64]]]:
    """What a title consists of, from back to front: how much it covers [32, 64], its luma, and its chroma [2, 1, 1]."""
    size = 4 * SMALL[1], 4 * SMALL[0]
    text, ground = Image.new("L", size), Image.new("L", size)
    drawing, behind = ImageDraw.Draw(text), ImageDraw.Draw(ground)
    kind = str(random.choice(["lines", "third", "badge", "bars"], p=[0.4, 0.3, 0.15, 0.15]))
    if kind == "badge":
        wide, tall = int(random.integers(20, 80)), int(random.integers(14, 50))
        left, top = int(random.integers(0, size[0] - wide)), int(random.choice([4, size[1] - tall - 4]))
        behind.rectangle((left, top, left + wide, top + tall), fill=255)
        drawing.text((left + 3, top + 2), _words(random, 6), fill=255, font=ImageFont.load_default(tall * 0.7))
    elif kind == "third":
        top, tall = int(random.integers(70, 95)), int(random.integers(18, 40))
        behind.rectangle((0, top, int(size[0] * random.choice([1.0, random.uniform(0.4, 0.9)])), top + tall), fill=255)
        for line in range(int(random.integers(1, 3))):
            font = ImageFont.load_default(random.uniform(9, 18))
            drawing.text((12, top + 2 + 16 * line), _words(random, 36), fill=255, font=font)
    else:
        tall, top = int(random.integers(12, 44)), int(random.integers(0, 60))
        for line in range(int(random.integers(1, 4))):
            row = top + int(1.3 * tall) * line
            if kind == "lines":
                words, font = _words(random, 28), ImageFont.load_default(tall)
                drawing.text((int(random.integers(4, 60)), row), words, fill=255, font=font)
            else:
                for column in np.flatnonzero(random.random(40) < 0.55).tolist():
                    left = 24 + 5 * column
                    drawing.rectangle((left, row, left + 4, row + tall), fill=255)
    layers: list[tuple[Small, float, NDArray[np.float64]]] = []
    for image, share in ((ground, random.uniform(0.5, 1.0)), (text, random.uniform(0.8, 1.0))):
        covered = np.asarray(image.resize(SMALL[::-1], Image.Resampling.BOX), np.float32)
        mask = covered * np.float32(share / 255)
        color = 128 + random.uniform(-80, 80, (2, 1, 1)) * (random.random() < 0.5)
        if mask.any():
            layers.append((mask, float(random.choice([235, 16, random.uniform(0, 255)], p=[0.5, 0.2, 0.3])), color))
    return layers


def _words(random: np.random.Generator, most: int) -> str:
    letters = random.integers(0, 31, int(random.integers(2, most + 1)))
    words = "".join(chr(97 + letter) if letter < 26 else " " for letter in letters.tolist())
    return words.upper() if random.random() < 0.5 else words


def dip(piece: Piece, random: np.random.Generator) -> Piece:
    """The piece with a moment of a plain color in the middle of a shot, which is no transition."""
    count, ramp = int(random.integers(1, 13)), int(random.integers(0, 4))
    whole = count + 2 * ramp
    shots = piece.shots(whole + 24)
    if not shots:
        return piece
    first, length = shots[int(random.integers(len(shots)))]
    start = first + 12 + int(random.integers(length - whole - 23))
    steps = (np.arange(ramp, dtype=np.float32) + 1) / (ramp + 1)
    parts = np.concatenate([steps, np.ones(count, np.float32), steps[::-1]])
    ground = float(random.choice([0, 16, 255, 235], p=[0.3, 0.5, 0.1, 0.1]))
    luma, chroma = piece.luma.astype(np.float32), piece.chroma.astype(np.float32)
    own = slice(start, start + whole)
    luma[own] += (ground - luma[own]) * parts[:, None, None]
    chroma[own] += (128 - chroma[own]) * parts[:, None, None, None]
    return Piece(_whole(luma), _whole(chroma), piece.joins)


def _whole(values: Small) -> NDArray[np.uint8]:
    rounded: NDArray[np.uint8] = values.round().clip(0, 255).astype(np.uint8)
    return rounded


def grade(piece: Piece, random: np.random.Generator) -> Piece:
    """What a whole film can look like: mirrored, brighter, without color, with bars, with noise."""
    luma, chroma = piece.luma, piece.chroma
    if random.random() < 0.5:
        luma, chroma = luma[..., ::-1], chroma[..., ::-1]
    if random.random() < 0.15:
        luma, chroma = luma[..., ::-1, :], chroma[..., ::-1, :]
    if random.random() < 0.4:
        table = 255 * (np.arange(256) / 255) ** np.exp(random.normal(0, 0.35)) * random.uniform(0.6, 1.1)
        if random.random() < 0.1:
            table = 255 - table
        luma = table.round().clip(0, 255).astype(np.uint8)[luma]
    if random.random() < 0.3:
        table = (np.arange(256) - 128) * random.choice([0, random.uniform(0.2, 1.6)]) + 128
        chroma = table.round().clip(0, 255).astype(np.uint8)[chroma]
        if random.random() < 0.3:
            chroma = chroma[:, ::-1]
    if random.random() < 0.1:
        luma, chroma = luma.copy(), chroma.copy()
        axis = int(random.integers(2))
        bar = int(random.integers(2, SMALL[axis] // 5)) // 2
        for rows, level, wide in ((luma, 16, 2 * bar), (chroma, 128, bar)):
            side = np.moveaxis(rows, -2 + axis, -1)
            side[..., :wide], side[..., -wide:] = level, level
    if random.random() < 0.3:
        noise = random.normal(0, random.uniform(0.3, 2.5), luma.shape).astype(np.float32)
        luma = (luma + noise).round().clip(0, 255).astype(np.uint8)
    return Piece(luma, chroma, piece.joins)
