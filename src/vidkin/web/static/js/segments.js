// Segments of a match: in words, with exact times, and played on both sides in sync.
import { clamp, clock, post } from "./base.js";
import { Sync, SyncTools } from "./sync.js";

/** Where a segment is in the query or in the target. */
export const stretch = (segment, side) => `${clock(segment[`${side}_start`])} - ${clock(segment[`${side}_end`])}`;

/** A segment in words: where it is on the sides that have times, how sure that is, and what happened to the copy. */
export function describeSegment(segment, sides = ["query", "target"]) {
  const { score, part, speed, mirrored, turned, backwards } = segment;
  // Over a short stretch a speed is not known better than that.
  const drift = Math.abs(speed - 1) * (segment.query_end - segment.query_start);
  return [
    sides.map((side) => stretch(segment, side)).join(" at "),
    `score ${score.toFixed(2)}`,
    part,
    drift > 0.25 && Math.abs(speed - 1) > 0.02 && `plays at ${(1 / speed).toFixed(2)}x`,
    mirrored && "mirrored",
    turned && `turned ${turned} degrees`,
    backwards && "backwards",
  ].filter(Boolean).join(", ");
}

/** The segments as a timeline of one side shows them. */
export function stretchesOf(segments, side, label = describeSegment) {
  return segments.map((each) => ({ start: each[`${side}_start`], end: each[`${side}_end`], mirrored: each.mirrored, label: label(each) }));
}

/** A part from a segment of a match, with the query as the leader. */
function partOf(segment) {
  return {
    start: segment.query_start,
    end: segment.query_end,
    at: segment.backwards ? segment.target_end : segment.target_start,
    rate: segment.backwards ? -segment.speed : segment.speed,
    mirrored: segment.mirrored,
    leader_box: segment.query_box,
    box: segment.target_box,
  };
}

/** The same parts with exact times, by decoding both files; `query` names the leader and the target. */
export async function exactParts({ video, upload, target }, parts) {
  const most = parts.slice(0, 8);
  const exact = await post("/api/sync", { video, upload, target, parts: most });
  return [...exact, ...parts.slice(most.length)];
}

/** Tools for both sides of a match, {player, timeline} each, whose segments can be chosen on the timelines. */
export class MatchTools extends SyncTools {
  constructor(query, target, stage, segments, label = describeSegment) {
    super(new Sync(query.player, [{ player: target.player, parts: [] }]), stage);
    target.player.element.classList.add("follower");
    this.parts = segments.map(partOf);
    for (const [name, { timeline }] of [["query", query], ["target", target]]) {
      timeline?.showSegments(stretchesOf(segments, name, label), (index) => this.playSegment(index));
    }
  }

  playSegment(index, options) {
    const part = this.parts[index];
    this.sync.followers[0].parts = this.parts;
    this.playStretch(part, { only: part, ...options });
  }

  /** Take exact times, as soon as they are there; `query` names both files. */
  async refine(query) {
    const exact = await exactParts(query, this.parts);
    const [follower] = this.sync.followers;
    if (this.sync.stopped) return;
    const index = this.parts.indexOf(follower.only);
    this.parts = exact;
    if (follower.parts.length) follower.parts = exact;
    if (index < 0) return;
    const { start, end } = (follower.only = exact[index]);
    if (this.sync.paused) this.playSegment(index, { play: false, time: clamp(this.sync.leader.time, start, end) });
  }
}
