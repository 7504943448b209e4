// Players that show the same moment: one leads, the others follow it frame by frame.
import { clamp, clock, make } from "./base.js";

// Beyond this drift all stop and gather again, below it one plays a little faster or slower, seconds.
const FAR = 0.3;
// The drift that is left alone: half a frame of common videos.
const CLOSE = 0.012;
const MOST_NUDGE = 0.25;
// Frames of each player that are kept while all play, and how long a picture waits for its like on the other side, seconds.
const KEPT = 12;
const PATIENCE = 0.5;

/**
 * The last frames of a player that plays, as pictures over its video. A browser that is busy shows one video later than
 * another; these are shown in pairs instead, so that no side is ahead of the other on the screen.
 */
class Kept {
  constructor(player) {
    this.player = player;
    this.frames = []; // {time, canvas}, the oldest first
    this.on = null; // the one that is shown
  }

  /** Keep the frame that the video shows now. */
  keep() {
    const { video, presented, screen } = this.player;
    const last = this.frames.at(-1);
    if (presented === null || !video.videoWidth || last?.time === presented.time) return;
    if (last && presented.time < last.time) this.forget();
    let frame = null;
    if (this.frames.length >= KEPT) [frame] = this.frames.splice(this.frames[0] === this.on ? 1 : 0, 1);
    else {
      frame = { canvas: make("canvas", { class: "kept", "aria-hidden": "true" }) };
      video.after(frame.canvas);
    }
    const scale = Math.min(1, (screen.clientWidth * devicePixelRatio) / video.videoWidth);
    const size = [video.videoWidth, video.videoHeight].map((side) => Math.max(Math.round(side * scale), 1));
    const { canvas } = frame;
    if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
    canvas.getContext("2d").drawImage(video, 0, 0, ...size);
    frame.time = presented.time;
    this.frames.push(frame);
  }

  show(frame) {
    this.on?.canvas.classList.remove("on");
    frame?.canvas.classList.add("on");
    this.on = frame;
  }

  /** Nothing of what was played before is shown any more, but for what is on the screen. */
  forget() {
    for (const { canvas } of this.frames.filter((frame) => frame !== this.on)) canvas.remove();
    this.frames = this.frames.filter((frame) => frame === this.on);
  }

  /** The video itself is on the screen again. */
  clear() {
    this.show(null);
    this.forget();
  }
}

/**
 * Keeps followers where parts put them. A part {start, end, at, rate, mirrored, leader_box, box}: moment t of the leader in
 * [start, end] is at `at + (t - start) * rate` of the follower, which is shown moment by moment where it runs backwards. Event "change" whenever another frame is shown.
 */
export class Sync extends EventTarget {
  constructor(leader, followers) {
    super();
    this.leader = leader;
    this.followers = followers.map(({ player, parts }) => ({ player, parts, part: null }));
    this.loop = null;
    this.holding = null; // while all are waited for
    this.stopping = new AbortController();
    this.placed = null; // the moment of the leader for which the others were placed
    this.uncovering = false;
    this.paired = -Infinity; // when a pair of pictures was put on the screen
    this.kept = [leader, ...this.followers.map(({ player }) => player)].map((player) => new Kept(player));
    const { signal } = this.stopping;
    const listen = (target, name, run) => target?.addEventListener(name, run, { signal });
    listen(leader, "frame", () => this.#follow());
    listen(leader, "time", () => this.#follow());
    listen(leader.video, "seeked", () => leader.presented === null && this.#place());
    // A stretch that ends with the file: the video can stop by itself before it is seen to be there.
    listen(leader, "end", () => this.loop?.again && this.holding === null && this.#startOver());
    for (const kept of this.kept) listen(kept.player, "frame", () => this.#keep(kept));
    this.timer = setInterval(() => this.#follow(), 250);
  }

  get stopped() {
    return this.stopping.signal.aborted;
  }

  /** Show a moment of the leader, and what the others have there; `only` is the part that holds for the first follower. */
  seek(time, only = null) {
    if (only !== null) this.followers[0].only = only;
    this.leader.seek(time);
    this.#place(time);
  }

  get paused() {
    return this.leader.paused && !this.holding;
  }

  /** All begin together: whoever is not there yet is waited for. */
  async play() {
    const end = this.loop === null ? this.leader.source.duration - 0.06 : this.loop.end;
    if (this.leader.time >= end) this.leader.seek(this.loop?.start ?? 0);
    await this.#gather();
  }

  pause() {
    const time = this.kept[0].on?.time;
    this.#halt();
    // What is on the screen stays there; where it stopped, the others go to exactly.
    if (time === undefined) setTimeout(() => this.#place(), 60);
    else this.seek(time + this.leader.frameSeconds / 2);
  }

  #halt(holding = null) {
    this.holding = holding;
    for (const { player } of this.kept) player.pause();
  }

  /** Seconds of each player that are on the screen. */
  get times() {
    return this.kept.map(({ player, on }) => on?.time ?? player.shown);
  }

  /** A frame of a player that plays is kept, and the newest frames that belong together are shown. */
  #keep(kept) {
    if (this.stopped || (this.holding === null && this.leader.paused)) return;
    kept.keep();
    if (this.holding !== null) return;
    const [leader, ...others] = this.kept;
    const late = (performance.now() - this.paired) / 1000 / PATIENCE;
    let best = null;
    for (const frame of [...leader.frames].reverse()) {
      const shown = [frame];
      let away = 0;
      others.forEach((other, index) => {
        const part = this.#part(this.followers[index], frame.time);
        if (part === null || part.rate < 0 || !other.player.video?.readyState) return; // nothing to show
        const goal = part.at + (frame.time - part.start) * part.rate;
        const far = ({ time }) => Math.abs(time - goal) / Math.max(other.player.frameSeconds, part.rate * leader.player.frameSeconds);
        const nearest = other.frames.reduce((one, two) => (one === null || far(two) < far(one) ? two : one), null);
        away = Math.max(away, nearest === null ? Infinity : far(nearest));
        shown[index + 1] = nearest;
      });
      if (away < (best?.away ?? Infinity)) best = { away, shown };
      if (away <= 1) break;
    }
    if (best === null || best.away > (late > 1 ? 2 : 1)) {
      if (late > 4) this.#gather(); // one side shows too few frames: both begin again at the same one
      return;
    }
    if (best.shown[0].time === leader.on?.time) return;
    this.paired = performance.now();
    this.kept.forEach((one, index) => one.show(best.shown[index] ?? null));
    this.dispatchEvent(new Event("change"));
  }

  /** The videos themselves are on the screen again, once they have what they were sent to. */
  async #uncover() {
    if (this.uncovering || this.kept.every(({ on }) => on === null)) return;
    this.uncovering = true;
    await Promise.all(this.kept.map(({ player }) => player.settled()));
    await new Promise((resolve) => setTimeout(resolve, 80));
    this.uncovering = false;
    if (this.leader.paused && this.holding === null) for (const kept of this.kept) kept.clear();
  }

  toggle() {
    if (this.paused) this.play();
    else this.pause();
  }

  /** Stop, go to where everybody should be, wait until it is shown, and go on. */
  async #gather() {
    const mine = {};
    this.#halt(mine);
    for (const kept of this.kept) kept.forget();
    await this.leader.settled();
    this.#place();
    await Promise.all(this.followers.map(({ player }) => player.settled()));
    if (this.holding !== mine || this.stopped) return;
    this.paired = performance.now();
    this.leader.play();
    for (const follower of this.followers) {
      if (this.#goal(follower) === null || follower.part.rate < 0) continue;
      follower.player.setRate(follower.part.rate * this.leader.rate);
      follower.player.play();
    }
    this.holding = null;
  }

  /** The stretch from its beginning. */
  #startOver() {
    this.leader.seek(this.loop.start);
    this.#gather();
  }

  /** So many frames of the leader further; all players stop. */
  step(frames) {
    this.#halt();
    this.leader.step(frames);
  }

  /** Repeat a stretch {start, end} of the leader; null plays on. */
  repeat(stretch) {
    this.loop = stretch;
  }

  #part(follower, time) {
    const inside = (part) => part !== null && part !== undefined && time >= part.start - 0.02 && time <= part.end + 0.02;
    if (inside(follower.only)) return follower.only;
    return follower.parts.find(inside) ?? null;
  }

  #goal(follower, time = this.leader.shown) {
    const part = this.#part(follower, time);
    if (part !== follower.part) {
      follower.part = part;
      follower.player.flip(part?.mirrored ?? false);
      follower.player.showBox(part?.box ?? null);
      if (follower === this.followers[0]) this.leader.showBox(part?.leader_box ?? null);
      follower.player.element.classList.toggle("away", part === null);
    }
    return part === null ? null : part.at + (time - part.start) * part.rate;
  }

  /** The others exactly there, by frame. */
  #place(time) {
    if (this.stopped) return;
    this.placed = time ?? this.leader.shown;
    for (const follower of this.followers) {
      const goal = this.#goal(follower, this.placed);
      if (goal !== null) follower.player.seek(goal + follower.player.frameSeconds / 2);
    }
    this.dispatchEvent(new Event("change"));
  }

  #follow() {
    if (this.stopped) return;
    this.dispatchEvent(new Event("change"));
    const leader = this.leader;
    if (this.holding === null && this.loop !== null && !leader.paused && leader.time >= this.loop.end) {
      if (this.loop.again) this.#startOver();
      else this.pause();
      return;
    }
    if (this.holding !== null) return;
    const still = leader.paused && !leader.video?.seeking;
    if (still) this.#uncover();
    if (still && this.placed !== null && Math.abs(leader.shown - this.placed) > 1e-3) this.#place();
    for (const follower of this.followers) {
      const player = follower.player;
      const goal = this.#goal(follower, leader.shownNow());
      if (goal === null || player.video === null) {
        player.pause();
        continue;
      }
      if (leader.paused) {
        if (!player.paused) player.pause();
        continue;
      }
      if (follower.part.rate < 0) {
        if (!player.paused) player.pause();
        player.seek(goal);
        continue;
      }
      const rate = follower.part.rate * leader.rate;
      const drift = player.shownNow() - goal;
      if (player.paused) {
        player.seek(goal);
        player.play();
      } else if (Math.abs(drift) > FAR) {
        this.#gather();
        return;
      }
      const nudge = Math.abs(drift) < CLOSE ? 0 : clamp(drift * 1.5, -MOST_NUDGE, MOST_NUDGE);
      player.setRate(rate * (1 - nudge));
    }
  }

  stop() {
    this.stopping.abort();
    clearInterval(this.timer);
    for (const kept of this.kept) kept.clear();
    this.leader.showBox(null);
    for (const { player } of this.followers) {
      player.pause();
      player.flip(false);
      player.showBox(null);
      player.setRate(1);
      player.element.classList.remove("away");
    }
  }
}

const WHOLE = [0, 0, 1, 1];
const VIEWS = { beside: "Side by side", wipe: "Wipe", difference: "Difference" };

/**
 * Buttons for players in sync: play, step by frame, repeat, and side by side, wipe or difference. `stage` holds the
 * players; in the last two views the first follower lies over the leader.
 */
export class SyncTools {
  constructor(sync, stage) {
    this.sync = sync;
    this.stage = stage;
    this.view = "beside";
    const button = (label, key, run, name) => make("button", { type: "button", onclick: run, title: `Key ${key}`, "aria-label": name, "aria-keyshortcuts": key }, label);
    this.play = button("", "P", () => this.toggle(), "Play in sync");
    this.play.className = "play";
    this.again = make("input", { type: "checkbox", onchange: () => this.#repeat() });
    this.choice = make("select", { "aria-label": "View", onchange: () => this.show(this.choice.value) }, ...Object.entries(VIEWS).map(([value, words]) => make("option", { value }, words)));
    this.wipe = make("input", { type: "range", min: 0, max: 100, value: 50, "aria-label": "Where the wipe is", oninput: () => this.#lay(), hidden: true });
    this.readout = make("span", { class: "clock facts" });
    this.element = make("div", { class: "tools sync-tools", role: "group", "aria-label": "Players in sync" },
      this.play, button("|<", "Shift+,", () => sync.step(-1), "A frame back, all"), button(">|", "Shift+.", () => sync.step(1), "A frame further, all"),
      make("label", { class: "line" }, this.again, " repeat"), this.choice, this.wipe, this.readout);
    sync.addEventListener("change", () => this.#tell());
    this.resized = new ResizeObserver(() => this.#lay());
    this.resized.observe(stage);
  }

  toggle() {
    this.sync.toggle();
    this.#tell();
  }

  /** Play a stretch of the leader {start, end}, from its start or a moment in it, again and again if the box is ticked. */
  playStretch(stretch, { play = true, only = null, time = stretch.start } = {}) {
    this.stretch = stretch;
    this.#repeat();
    this.sync.seek(time, only);
    if (play) this.sync.play();
  }

  #repeat() {
    this.sync.repeat(this.stretch ? { ...this.stretch, again: this.again.checked } : null);
  }

  show(view) {
    this.view = this.choice.value = view;
    this.wipe.hidden = view !== "wipe";
    this.stage.classList.toggle("laid", view !== "beside");
    this.stage.classList.toggle("difference", view === "difference");
    this.#lay();
  }

  /** The first follower over the leader, so that what matches lies on what it matches. */
  #lay() {
    const { leader, followers } = this.sync;
    const screen = followers[0]?.player.screen;
    if (!screen) return;
    if (this.view === "beside") {
      for (const name of ["left", "top", "width", "height", "clipPath"]) screen.style[name] = "";
      return;
    }
    const base = this.stage.getBoundingClientRect();
    const under = leader.screen.getBoundingClientRect();
    const part = followers[0].part;
    const [from, to] = [part?.leader_box ?? WHOLE, part?.box ?? WHOLE];
    const size = (axis) => (from[axis + 2] - from[axis]) / (to[axis + 2] - to[axis]);
    const [width, height] = [under.width * size(0), under.height * size(1)];
    const left = under.left - base.left + under.width * from[0] - width * to[0];
    const top = under.top - base.top + under.height * from[1] - height * to[1];
    Object.assign(screen.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    screen.style.clipPath = this.view === "wipe" ? `inset(0 0 0 ${this.wipe.value}%)` : "";
  }

  #tell() {
    const playing = !this.sync.paused;
    this.play.classList.toggle("playing", playing);
    this.play.setAttribute("aria-label", playing ? "Pause all" : "Play in sync");
    this.readout.textContent = this.sync.times.map((time) => clock(time, 2)).join(" | ");
  }

  stop() {
    this.show("beside");
    this.resized.disconnect();
    this.sync.stop();
    this.element.remove();
  }
}
