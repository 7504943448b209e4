// A timeline below a player: where it is, matching segments, and a stretch that can be marked.
import { clock, dragPointer, make, onKey, placeMoment, placeStretch, shareAt } from "./base.js";
import { Player, playerKeys } from "./player.js";

const FRAMES = 10;
const HINT = "Drag over the frames to mark a stretch.";

/** Frames of a source at equal distances between two times. */
export function filmstrip(source, from, to, frames = FRAMES) {
  const image = (_, index) => make("img", { src: `${source.address}/thumbnail?time=${(from + ((index + 0.5) / frames) * (to - from)).toFixed(1)}`, alt: "", loading: "lazy", decoding: "async", draggable: "false" });
  return make("div", { class: "film", "aria-hidden": "true" }, ...Array.from({ length: frames }, image));
}

const classOf = ({ mirrored }) => (mirrored ? "segment mirrored" : "segment");

/** A button on a line of `duration` seconds where a stretch {start, end, mirrored, label} is. */
export const stretchButton = (stretch, duration, attributes) =>
  placeStretch(make("button", { type: "button", class: classOf(stretch), "aria-label": stretch.label, title: stretch.label, ...attributes }), stretch.start, stretch.end, duration);

/** Events: "seek" when somebody chose a moment, "mark" when the stretch changed. */
export class Timeline extends EventTarget {
  constructor(player, { markable = false } = {}) {
    super();
    this.player = player;
    this.duration = Math.max(player.source.duration, 0.1);
    this.start = null;
    this.end = null;
    this.head = make("div", { class: "head" });
    this.marked = make("div", { class: "marked", hidden: true });
    const title = "Arrow keys: a second; with Shift: five; comma and period: a frame";
    const limits = { "aria-label": `Moment of ${player.source.name}`, "aria-valuemin": "0", "aria-valuemax": this.duration.toFixed(1) };
    this.track = make("div", { class: "track", role: "slider", tabindex: "0", title, ...limits }, this.marked, this.head);
    this.segments = make("div", { class: "segments" });
    this.film = filmstrip(player.source, 0, this.duration);
    this.element = make("div", { class: "timeline" }, this.track, this.film, this.segments);
    for (const part of markable ? [this.track] : [this.track, this.film]) part.addEventListener("pointerdown", (event) => this.#drag(event, (time) => this.#seek(time)));
    onKey((key) => (["Home", "End"].includes(key) ? this.#seek(key === "Home" ? 0 : this.duration) : false), this.track);
    player.addEventListener("time", () => this.#show());
    if (markable) this.#addMarking();
    this.#show();
  }

  #addMarking() {
    this.strip = make("div", { class: "strip", title: "Drag to mark a stretch" }, this.film, (this.markedFrames = make("div", { class: "marked", hidden: true })));
    let first = 0;
    this.strip.addEventListener("pointerdown", (event) => {
      first = null;
      this.#drag(event, (time) => {
        first ??= time;
        this.mark(Math.min(first, time), Math.max(first, time));
        this.#seek(time); // the frame at this end is on the screen
      });
    });
    const button = (label, key, onclick) => make("button", { type: "button", onclick, "aria-keyshortcuts": key, title: `Key ${key}` }, label);
    this.range = make("span", { class: "range", role: "status" }, HINT);
    this.clear = button("Clear", "Escape", () => this.mark(null, null));
    const [start, end] = [button("Start here", "I", () => this.markStart()), button("End here", "O", () => this.markEnd())];
    this.marking = make("div", { class: "tools marking" }, start, end, this.clear, this.range);
    this.clear.hidden = true;
    this.track.after(this.strip);
    this.element.append(this.marking);
  }

  markStart() {
    const time = this.player.time;
    this.mark(time, this.end !== null && this.end > time ? this.end : this.duration);
  }

  markEnd() {
    const time = this.player.time;
    this.mark(this.start !== null && this.start < time ? this.start : 0, time);
  }

  /** Mark a stretch; null for none. */
  mark(start, end) {
    const valid = start !== null && end !== null && end - start >= 0.1;
    [this.start, this.end] = valid ? [start, end] : [null, null];
    for (const part of [this.marked, this.markedFrames]) {
      if (!part) continue;
      part.hidden = !valid;
      if (valid) placeStretch(part, start, end, this.duration);
    }
    if (this.clear) {
      this.clear.hidden = !valid;
      this.range.textContent = valid ? `${clock(start)} - ${clock(end)}` : HINT;
    }
    this.dispatchEvent(new Event("mark"));
  }

  /** Draw stretches [{start, end, mirrored, label}]; a click calls onChoose(index). */
  showSegments(stretches, onChoose) {
    this.segments.replaceChildren(...stretches.map((stretch, index) => stretchButton(stretch, this.duration, { onclick: () => onChoose(index) })));
  }

  /** Draw a thin line for each of several videos, each with its stretches {start, end, mirrored}; to be looked at only. */
  showLines(rows) {
    const span = (stretch) => placeStretch(make("span", { class: classOf(stretch) }), stretch.start, stretch.end, this.duration);
    this.segments.replaceChildren(...rows.map((stretches) => make("div", { class: "thin", "aria-hidden": "true" }, ...stretches.map(span))));
  }

  #seek(time) {
    this.player.seek(time);
    this.dispatchEvent(new CustomEvent("seek", { detail: time }));
    this.#show(time);
  }

  #drag(event, use) {
    if (event.button !== 0) return;
    const target = event.currentTarget;
    const move = (moved) => use(shareAt(moved, target) * this.duration);
    move(event);
    dragPointer(event, target, { move });
  }

  #show(time = this.player.time) {
    placeMoment(this.head, Math.min(time, this.duration), this.duration);
    this.track.setAttribute("aria-valuenow", time.toFixed(1));
    this.track.setAttribute("aria-valuetext", clock(time));
  }
}

/** Put a player of a source into an element, with its keys and, of a video, its timeline. */
export function openSide(place, source, options) {
  const player = new Player(source, options);
  const timeline = source.still ? null : new Timeline(player);
  place.append(player.element);
  if (timeline) player.element.append(timeline.element);
  playerKeys(player.element, player);
  return { source, player, timeline };
}
