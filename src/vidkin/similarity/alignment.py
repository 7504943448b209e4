"""From a map of frame similarities to the segments that match, in seconds."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from vidkin.errors import InvalidArgumentError
from vidkin.similarity.lines import (
    PREFERENCE,
    EvidenceMap,
    Line,
    LineSearch,
    NearestFrame,
    Run,
    best_run,
    best_runs,
    check_times,
)
from vidkin.similarity.segment import Segment

__all__ = ["align"]

SPEEDS = (0.5, 0.667, 0.8, 1.0, 1.25, 1.5, 2.0)

# Seconds of frames that have nothing to do with each other, from which on a match is two matches.
_LONGEST_GAP = 5.0
# How far the map has to be above the threshold, on average over the minimum duration.
_LEAST_EXCESS = 0.1
# Columns beside a line in which its cells are looked for while it is fitted.
_FIT_REACH = 2
_FIT_ROUNDS = 8
_FEWEST_FOR_SPEED = 4
# Lines between the given speeds: a factor of up to exp(.2), in steps of a hundredth.
_LARGEST_TURN = 0.2
_TURNS = 41
# Isolated bright cells are cleared one by one; no more of them than this per segment asked for.
_ATTEMPTS = 8
# Share of the evidence of full weight that a run of frames of little weight needs.
_LEAST_WEIGHT = 0.25


def align(
    similarity: torch.Tensor,
    query_times: torch.Tensor,
    target_times: torch.Tensor,
    *,
    query_weights: torch.Tensor | None = None,
    target_weights: torch.Tensor | None = None,
    threshold: float = 0.3,
    speeds: Sequence[float] = SPEEDS,
    maximum_segments: int = 8,
    minimum_duration: float = 2.0,
    mirrored: bool = False,
) -> list[Segment]:
    """Find stretches of the query that appear in the target: straight lines in the map, strongest first.

    With ``e[x, y] = (map[x, y] - threshold) * min(w_x, w_y) * seconds of x``: over all lines ``target time =
    offset + speed * query time`` (speeds as given, offsets half a target period apart) and all runs on them,
    the largest ``min(1, speed) * sum of e`` is taken, cells being the nearest target frame to the line in
    seconds. Speeds other than 1 must win by 5 %. The line is then fitted to the brightest cells beside it,
    which finds speeds between the given ones. What it explains is cleared (its cells, and whatever above the
    threshold adjoins them along either axis: a static scene is a block), and the search goes on. One part
    of the query may thus match several places of the target, and the other way round.

    Args:
        similarity: [Tq, Tt] calibrated similarities, unrelated frames near 0 to 0.2, copies 0.4 to 1.
        query_times: [Tq] seconds, increasing; they may be irregular and at another rate than the target's.
        target_times: [Tt] seconds likewise.
        query_weights: [Tq] in [0, 1], how much a frame counts; frames of weight 0 are bridged without loss.
            None where all count.
        target_weights: [Tt] likewise.
        threshold: Similarity from which on frames speak for a match. Lower finds more and longer segments.
        speeds: Speeds to look for, seconds of target per second of query.
        maximum_segments: Most segments to return.
        minimum_duration: Seconds; shorter runs are dropped, unless a whole video is shorter.
        mirrored: Passed on to the segments.

    Returns:
        Segments whose ends lie half a sampling period of the query beyond the first and the last matching
        frame (on both sides of the line), within [first frame, last frame + period] of each video; a match
        with no frame between it and a video's begin or end reaches that. The score is the
        weighted mean of the map along the segment. Empty where nothing matches.

    Raises:
        InvalidArgumentError: Shapes do not match, the map is empty, times do not increase, or a number is out of
            range.
    """
    if not 0.0 < threshold < 1.0:
        raise InvalidArgumentError(f"threshold must be above 0 and below 1, got {threshold}")
    if not speeds or min(speeds) <= 0.0:
        raise InvalidArgumentError(f"speeds must be one or more numbers above 0, got {tuple(speeds)}")
    if maximum_segments < 1:
        raise InvalidArgumentError(f"maximum_segments must be at least 1, got {maximum_segments}")
    if not minimum_duration >= 0.0:
        raise InvalidArgumentError(f"minimum_duration must be at least 0 s, got {minimum_duration}")
    evidence, weights = _evidence(
        similarity, query_times, target_times, query_weights, target_weights, threshold
    )
    shortest = min(
        minimum_duration,
        _duration(evidence.query_times, evidence.query_period),
        _duration(evidence.target_times, evidence.target_period),
    )
    # Weights below 1 are no reason to believe less in a run that is long enough; a 4th has to remain.
    lightest = float(torch.minimum(weights[0].min(), weights[1].min()))
    least = _LEAST_EXCESS * shortest * max(lightest, _LEAST_WEIGHT)
    if _most_evidence(evidence) < least:
        return []
    # A line that is fitted to its cells explains more than the line that was found, but not twice as much.
    search = LineSearch(evidence, speeds, max(_LEAST_EXCESS * shortest * _LEAST_WEIGHT, least / 2))
    segments: list[Segment] = []
    for _ in range(_ATTEMPTS * maximum_segments):
        found = search.best()
        if found is None or len(segments) == maximum_segments:
            break
        explained = _fitted(evidence, found, speeds, _LONGEST_GAP * threshold)
        run = _trimmed(evidence, explained, weights, threshold)
        if _is_believable(evidence, run, weights, shortest):
            segments.append(_segment(evidence, run, similarity, weights, mirrored))
            _clear(evidence, explained, threshold)
        else:
            # Take the evidence of a run away, and nothing else.
            rows, columns = _cells(evidence, explained)
            evidence.excess[rows, columns] = -threshold * evidence.query_period
    return segments


def _evidence(
    similarity: torch.Tensor,
    query_times: torch.Tensor,
    target_times: torch.Tensor,
    query_weights: torch.Tensor | None,
    target_weights: torch.Tensor | None,
    threshold: float,
) -> tuple[EvidenceMap, tuple[torch.Tensor, torch.Tensor]]:
    """The evidence map, and the weights of query (times seconds) and target frames."""
    if similarity.ndim != 2 or 0 in similarity.shape or not similarity.is_floating_point():
        raise InvalidArgumentError(
            f"similarity must be [Tq, Tt] floating point with at least one frame on both sides, got "
            f"{list(similarity.shape)} {similarity.dtype}"
        )
    query_times = check_times("query_times", query_times, similarity.shape[0])
    target_times = check_times("target_times", target_times, similarity.shape[1])
    # Median distances of frames; a single frame takes the other side's, two single ones take a second.
    found = [
        float(times.diff().median()) if len(times) > 1 else None for times in (query_times, target_times)
    ]
    query_period, target_period = found[0] or found[1] or 1.0, found[1] or found[0] or 1.0
    sides = []
    for name, given, times in (
        ("query_weights", query_weights, query_times),
        ("target_weights", target_weights, target_times),
    ):
        if given is not None and given.shape != times.shape:
            raise InvalidArgumentError(f"{name} must be {list(times.shape)}, got {list(given.shape)}")
        sides.append(torch.ones(times.shape) if given is None else given.detach().to("cpu", torch.float32))
    excess = similarity.detach().to("cpu", torch.float32) - threshold
    if query_weights is not None or target_weights is not None:
        excess *= torch.minimum(sides[0][:, None], sides[1])
    # How long each frame stands, [T] float32: half the distance to its neighbors, gaps not counted.
    gaps = query_times.diff().clamp(max=2 * query_period)
    edge = torch.full((1,), query_period, dtype=query_times.dtype)
    seconds = ((torch.cat([edge, gaps]) + torch.cat([gaps, edge])) / 2).float()
    excess *= seconds[:, None]
    nearest = NearestFrame(target_times, target_period)
    return (
        EvidenceMap(
            excess,
            query_times,
            target_times,
            query_seconds=seconds,
            query_period=query_period,
            target_period=target_period,
            nearest=nearest,
        ),
        (sides[0], sides[1]),
    )


def _most_evidence(evidence: EvidenceMap) -> float:
    """An upper bound on the evidence of any line: the brightest cell of each query frame, or of each target frame for
    as long as it stands."""
    bright = evidence.excess.clamp(min=0)
    rows, columns = float(bright.amax(1).sum()), float(bright.amax(0).sum())
    return min(rows, columns * (1 + evidence.target_period / evidence.query_period))


def _duration(times: torch.Tensor, period: float) -> float:
    return float(times[-1] - times[0]) + period


def _fitted(evidence: EvidenceMap, run: Run, speeds: Sequence[float], longest_gap: float) -> Run:
    """Fit the line to the cells beside it and take its best run; repeat while that explains more."""
    best = best_run(evidence, run.line, longest_gap=longest_gap) or run
    # No turn could make the run longer if one of the videos ends before it and one after it.
    columns = _cells(evidence, best)[1]
    starts = best.first == 0 or bool((columns == 0).any())
    last_row, last_column = len(evidence.query_times) - 1, len(evidence.target_times) - 1
    if not starts or (best.last != last_row and int(columns.max()) != last_column):
        best = _turned(evidence, best, longest_gap)
    for _ in range(_FIT_ROUNDS):
        line = _fitted_line(evidence, best, speeds)
        if line == best.line:
            break
        found = best_run(evidence, line, longest_gap=longest_gap)
        # A line through the middle of its cells may lose a cell or two to rounding and is still the truer one.
        if found is None or found.evidence < 0.98 * best.evidence:
            break
        best = found
    return best


def _turned(evidence: EvidenceMap, run: Run, longest_gap: float) -> Run:
    """The best of lines turned a little about the middle of a run: speeds between those searched for.

    Read at whole frames, a line of speed 1.1 is ten frames of speed 1, then a step: no fit to a run sees it.
    """
    turns = torch.linspace(-_LARGEST_TURN, _LARGEST_TURN, _TURNS, dtype=torch.float64).exp()
    middle = float(evidence.query_times[run.first] + evidence.query_times[run.last]) / 2
    shifts = torch.tensor([-0.5, 0.0, 0.5], dtype=torch.float64) * evidence.target_period
    speeds = (run.line.speed * turns).repeat_interleave(len(shifts))
    height = run.line.offset + run.line.speed * middle + shifts.repeat(len(turns))
    offsets = height - speeds * middle
    totals = best_runs(evidence.along(speeds, offsets))[0]
    leader = int(totals.argmax())
    if float(totals[leader]) <= run.evidence / PREFERENCE:
        return run
    turned = best_run(evidence, Line(float(speeds[leader]), float(offsets[leader])), longest_gap=longest_gap)
    return turned if turned is not None and turned.evidence > run.evidence / PREFERENCE else run


def _fitted_line(evidence: EvidenceMap, run: Run, speeds: Sequence[float]) -> Line:
    """Weighted least squares through the brightest cell beside the line at each query frame of a run."""
    line = run.line
    times = evidence.query_times[run.first : run.last + 1]
    found, near = evidence.columns(
        torch.tensor([line.speed], dtype=torch.float64), torch.tensor([line.offset], dtype=torch.float64)
    )
    reach = torch.arange(-_FIT_REACH, _FIT_REACH + 1)
    columns = found[0, run.first : run.last + 1, None] + reach
    inside = (columns >= 0) & (columns < len(evidence.target_times)) & near[0, run.first : run.last + 1, None]
    columns = columns.clamp(0, len(evidence.target_times) - 1)
    values = evidence.excess[torch.arange(run.first, run.last + 1)[:, None], columns].double()
    values = torch.where(inside, values, -torch.inf)
    # Of equally bright cells, the nearest to the line.
    distance = (evidence.target_times[columns] - (line.offset + line.speed * times)[:, None]).abs()
    chosen = (values - 1e-6 * distance).argmax(1, keepdim=True)
    weight = values.gather(1, chosen)[:, 0].clamp(min=0.0)
    place = evidence.target_times[columns.gather(1, chosen)[:, 0]]
    weight = weight / weight.sum()
    speed = line.speed
    if int((weight > 0).sum()) >= _FEWEST_FOR_SPEED:
        centered = times - (weight * times).sum()
        speed = float((weight * centered * place).sum() / (weight * centered.square()).sum())
        speed = min(max(speed, 0.8 * min(speeds)), 1.25 * max(speeds))
        speed = _snapped(speed, speeds, evidence, float(times[-1] - times[0]))
    return Line(speed, float((weight * (place - speed * times)).sum()))


def _snapped(speed: float, speeds: Sequence[float], evidence: EvidenceMap, span: float) -> float:
    """Speed 1, or the nearest of the given ones, where the run is too short to tell it from what was fitted."""
    for known in (1.0, min(speeds, key=lambda item: abs(item - speed))):
        drift = abs(speed - known) * span
        if drift <= max(evidence.target_period, known * evidence.query_period) / 2:
            return known
    return speed


def _trimmed(
    evidence: EvidenceMap, run: Run, weights: tuple[torch.Tensor, torch.Tensor], threshold: float
) -> Run:
    """Cut off the ends of a run that are below half of its mean: frames beside a match still look alike."""
    rows, columns = _cells(evidence, run)
    weight = torch.minimum(weights[0][rows], weights[1][columns]) * evidence.query_seconds[rows]
    values = evidence.excess[rows, columns]
    mean = threshold + float(values.sum()) / max(float(weight.sum()), 1e-9)
    if mean <= 2 * threshold:
        return run
    _, first, last = best_runs((values - (mean / 2 - threshold) * weight)[None])
    kept = values[int(first[0]) : int(last[0]) + 1]
    return Run(run.line, int(rows[first[0]]), int(rows[last[0]]), float(kept.sum()) * run.line.weight)


def _is_believable(
    evidence: EvidenceMap, run: Run, weights: tuple[torch.Tensor, torch.Tensor], shortest: float
) -> bool:
    """Whether a run is long enough on both sides, and similar enough for the weight of its frames."""
    times = evidence.query_times
    length = float(times[run.last] - times[run.first]) + evidence.query_period
    rows, columns = _cells(evidence, run)
    weight = float(torch.minimum(weights[0][rows], weights[1][columns]).mean()) if len(rows) else 0.0
    return (
        length * run.line.weight >= shortest * 0.999 - 1e-6
        and run.evidence >= _LEAST_EXCESS * shortest * max(weight, _LEAST_WEIGHT) * run.line.weight
    )


def _segment(
    evidence: EvidenceMap,
    run: Run,
    similarity: torch.Tensor,
    weights: tuple[torch.Tensor, torch.Tensor],
    mirrored: bool,
) -> Segment:
    line = run.line
    rows, columns = _cells(evidence, run)
    start, end = _span(evidence, run)
    values = similarity.detach()[rows.to(similarity.device), columns.to(similarity.device)].cpu().double()
    weight = torch.minimum(weights[0][rows], weights[1][columns]).double()
    score = float((weight * values).sum() / weight.sum())
    return Segment(
        query_start=start,
        query_end=max(start, end),
        target_start=max(0.0, line.offset + line.speed * start),
        target_end=max(0.0, line.offset + line.speed * max(start, end)),
        score=min(1.0, max(0.0, score)),
        speed=line.speed,
        mirrored=mirrored,
    )


def _span(evidence: EvidenceMap, run: Run) -> tuple[float, float]:
    """First and last second of a run on the query's clock; both sides are cut together to stay on the line.

    Half a period beyond the outermost matching frames, but all the way to where one of the videos begins or ends if
    there is no frame in between that could say otherwise.
    """
    line, half = run.line, evidence.query_period / 2
    times, targets = evidence.query_times, evidence.target_times
    first = max(float(times[0]), (float(targets[0]) - line.offset) / line.speed)
    last = min(
        float(times[-1]) + evidence.query_period,
        (float(targets[-1]) + evidence.target_period - line.offset) / line.speed,
    )
    start, end = max(first, float(times[run.first]) - half), min(last, float(times[run.last]) + half)
    # Frames of a finer target in the stretch that is added may say otherwise after all.
    other = (targets - line.offset) / line.speed
    if run.first == 0 or float(times[run.first - 1]) < first:
        unlike = other[(other > first) & (other <= start) & (evidence.excess[run.first] < 0)]
        start = float(unlike[-1]) if len(unlike) else first
    if run.last == len(times) - 1 or float(times[run.last + 1]) >= last:
        unlike = other[(other >= end) & (other < last) & (evidence.excess[run.last] < 0)]
        end = float(unlike[0]) if len(unlike) else last
    return start, end


def _cells(evidence: EvidenceMap, run: Run) -> tuple[torch.Tensor, torch.Tensor]:
    """Query and target frames of a run, [n] each, without those where the line meets no target frame."""
    found, near = evidence.columns(
        torch.tensor([run.line.speed], dtype=torch.float64),
        torch.tensor([run.line.offset], dtype=torch.float64),
    )
    rows = torch.arange(run.first, run.last + 1)
    kept = near[0, rows]
    return rows[kept], found[0, rows][kept]


def _clear(evidence: EvidenceMap, run: Run, threshold: float) -> None:
    """Take away what a run explains: its cells, and the positive ones that adjoin them along rows and columns."""
    positive = evidence.excess > 0
    rows, columns = _cells(evidence, run)
    against = -threshold * evidence.query_period
    _clear_beside(evidence.excess, positive, rows, columns, against)
    once = torch.ones(len(columns), dtype=torch.bool)
    once[1:] = columns.diff() > 0
    _clear_beside(evidence.excess.T, positive.T, columns[once], rows[once], against)


def _clear_beside(
    excess: torch.Tensor, positive: torch.Tensor, lines: torch.Tensor, centers: torch.Tensor, against: float
) -> None:
    """In each of ``lines`` (all different) of excess [N, M], clear the stretch around its center that is positive.

    A single cell below the threshold does not end the stretch.
    """
    places = torch.arange(excess.shape[1])
    step = max(1, (1 << 20) // excess.shape[1])
    for start in range(0, len(lines), step):
        line, center = lines[start : start + step], centers[start : start + step, None]
        bright = positive[line]
        bright[:, 1:] |= positive[line, :-1]
        bright[:, :-1] |= positive[line, 1:]
        below = torch.where(~bright & (places < center), places, -1).amax(1, keepdim=True)
        above = torch.where(~bright & (places > center), places, excess.shape[1]).amin(1, keepdim=True)
        cleared = (places > below) & (places < above)
        excess[line] = torch.where(cleared, excess[line].clamp(max=against), excess[line])
