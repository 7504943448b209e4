// The frame map: a canvas with segments over it, a cross for the chosen cell, by mouse and by keyboard.
import { arrowOf, clamp, make, onKey } from "./base.js";

// Magma, as in pictures of `vidkin match --output FILE.svg`: five of its colors.
const COLORS = [[0, 0, 4], [81, 18, 124], [183, 55, 121], [252, 137, 97], [252, 253, 191]];

function color(share) {
  const place = share * (COLORS.length - 1);
  const low = Math.min(Math.floor(place), COLORS.length - 2);
  return COLORS[low].map((value, index) => value + (COLORS[low + 1][index] - value) * (place - low));
}

/** Events "point" (a cell is under the pointer) and "choose" (clicked), with {queryTime, targetTime, similarity}. */
export class HeatMap extends EventTarget {
  constructor({ rows, columns, query_times, target_times, cells }, segments) {
    super();
    Object.assign(this, { rows, columns, queryTimes: query_times, targetTimes: target_times });
    this.values = Uint8Array.from(atob(cells), (letter) => letter.charCodeAt(0));
    this.row = this.column = 0;
    this.canvas = make("canvas", { width: columns, height: rows, "aria-hidden": "true" });
    this.cross = make("div", { class: "cross", hidden: true });
    const lines = segments.map((segment) =>
      make("line", {
        x1: this.#share(this.targetTimes, segment.backwards ? segment.target_end : segment.target_start),
        y1: this.#share(this.queryTimes, segment.query_start),
        x2: this.#share(this.targetTimes, segment.backwards ? segment.target_start : segment.target_end),
        y2: this.#share(this.queryTimes, segment.query_end),
        class: segment.mirrored && "mirrored",
      }));
    const svg = make("svg", { viewBox: "0 0 1 1", preserveAspectRatio: "none", "aria-hidden": "true" }, ...lines);
    this.element = make("div", { class: "heat", tabindex: "0", role: "application", "aria-label": "Frame map; arrow keys move, Enter shows both moments" }, this.canvas, svg, this.cross);
    // About square cells, within bounds that a screen shows.
    this.element.style.aspectRatio = String(clamp(columns / rows, 1, 4));
    this.#draw();
    this.element.addEventListener("pointermove", (event) => this.#point(event));
    this.element.addEventListener("click", (event) => {
      this.#point(event);
      this.#tell("choose");
    });
    onKey((key, event) => this.#key(key, event.shiftKey ? 10 : 1), this.element);
  }

  #draw() {
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(this.columns, this.rows);
    const table = Array.from({ length: 256 }, (_, value) => color(value / 255));
    this.values.forEach((value, index) => image.data.set([...table[value], 255], 4 * index));
    context.putImageData(image, 0, 0);
  }

  /** Where a time is on an axis, as a share. */
  #share(times, time) {
    if (times.length < 2) return 0.5;
    const step = (times[times.length - 1] - times[0]) / (times.length - 1);
    return clamp((time - times[0]) / (step * times.length));
  }

  #point(event) {
    const box = this.element.getBoundingClientRect();
    this.#move(Math.floor(((event.clientY - box.top) / box.height) * this.rows), Math.floor(((event.clientX - box.left) / box.width) * this.columns));
  }

  #key(key, far) {
    const [right, down] = arrowOf(key);
    if (key === "Enter") this.#tell("choose");
    else if (right || down) this.#move(this.row + far * down, this.column + far * right);
    else return false;
  }

  #move(row, column) {
    this.row = clamp(row, 0, this.rows - 1);
    this.column = clamp(column, 0, this.columns - 1);
    this.cross.hidden = false;
    this.cross.style.left = `${(100 * (this.column + 0.5)) / this.columns}%`;
    this.cross.style.top = `${(100 * (this.row + 0.5)) / this.rows}%`;
    this.#tell("point");
  }

  #tell(name) {
    const detail = {
      queryTime: this.queryTimes[this.row],
      targetTime: this.targetTimes[this.column],
      similarity: this.values[this.row * this.columns + this.column] / 255,
    };
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
