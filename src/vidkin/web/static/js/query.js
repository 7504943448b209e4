// What is searched for: a player with a timeline to mark a stretch, and a rectangle to draw on its frame.
import { arrowOf, clamp, dragPointer, make, onKey } from "./base.js";
import { Player, placeBox, playerKeys } from "./player.js";
import { Timeline } from "./timeline.js";

const STEP = 0.02;
const LEAST = 0.05;

/** Event "change" when another stretch or rectangle is chosen. */
export class QueryPanel extends EventTarget {
  constructor(source) {
    super();
    this.source = source;
    this.box = null;
    this.player = new Player(source);
    this.element = this.player.element;
    if (!source.still) {
      this.timeline = new Timeline(this.player, { markable: true });
      this.timeline.addEventListener("mark", () => {
        if (this.timeline.start !== null) this.setBox(null);
        this.dispatchEvent(new Event("change"));
      });
      this.element.append(this.timeline.element);
    }
    const title = "Key R. Drag on the picture; or arrow keys move it, with Shift they size it";
    this.rectangle = make("button", { type: "button", "aria-pressed": "false", "aria-keyshortcuts": "R", title, onclick: () => this.toggleRectangle() }, "Rectangle");
    this.player.note.before(this.rectangle);
    playerKeys(this.element, this.player, { wholePage: true });
    this.player.overlay.addEventListener("pointerdown", (event) => this.#draw(event));
  }

  /** What to send to the API: {video|upload, start, end, time, box}. */
  describe() {
    const query = { ...this.source.key };
    if (this.box !== null) Object.assign(query, { box: this.box, time: this.player.time });
    else if (this.timeline?.start != null) Object.assign(query, { start: this.timeline.start, end: this.timeline.end });
    return query;
  }

  toggleRectangle() {
    this.setBox(this.box === null ? [0.25, 0.25, 0.75, 0.75] : null);
    this.frame?.focus();
  }

  /** Show a rectangle, shares of the picture; null removes it. */
  setBox(box) {
    this.box = box;
    this.frame?.remove();
    this.frame = null;
    this.rectangle.setAttribute("aria-pressed", String(box !== null));
    this.rectangle.setAttribute("aria-keyshortcuts", box === null ? "R" : "R Escape");
    this.player.overlay.classList.toggle("drawing", box !== null);
    if (box !== null) {
      this.player.pause();
      this.player.leavePoster(); // what is drawn on is what is searched for
      const label = "Rectangle; arrow keys move it, with Shift they size it, Escape removes it";
      this.frame = make("div", { class: "box drawn", tabindex: "0", role: "group", "aria-label": label });
      onKey((key, event) => this.#moveBox(key, event.shiftKey), this.frame);
      placeBox(this.frame, box);
      this.player.overlay.append(this.frame);
    }
    this.dispatchEvent(new Event("change"));
  }

  #draw(event) {
    // A rectangle can be drawn on any picture that stands still.
    if ((this.box === null && !this.player.paused && !this.source.still) || event.button !== 0) return;
    event.preventDefault();
    const overlay = this.player.overlay;
    const at = (moved) => {
      const area = overlay.getBoundingClientRect();
      return [clamp((moved.clientX - area.left) / area.width), clamp((moved.clientY - area.top) / area.height)];
    };
    const [x, y] = at(event);
    const move = (moved) => {
      const [toX, toY] = at(moved);
      const box = [Math.min(x, toX), Math.min(y, toY), Math.max(x, toX), Math.max(y, toY)];
      if (box[2] - box[0] < LEAST || box[3] - box[1] < LEAST) return;
      if (!this.frame) return this.setBox(box);
      this.box = box;
      placeBox(this.frame, box);
    };
    const end = () => {
      this.frame?.focus({ preventScroll: true });
      this.dispatchEvent(new Event("change"));
    };
    dragPointer(event, overlay, { move, end });
  }

  #moveBox(key, sizes) {
    const [across, down] = arrowOf(key).map((step) => step * STEP);
    if (!across && !down) return false;
    const [left, top, right, bottom] = this.box;
    if (sizes) this.box = [left, top, clamp(right + across, left + LEAST, 1), clamp(bottom + down, top + LEAST, 1)];
    else {
      const x = clamp(across, -left, 1 - right);
      const y = clamp(down, -top, 1 - bottom);
      this.box = [left + x, top + y, right + x, bottom + y];
    }
    placeBox(this.frame, this.box);
    this.dispatchEvent(new Event("change"));
  }
}
