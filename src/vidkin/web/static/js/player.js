// A player of one video, picture or dropped file: what the browser cannot play is fetched in converted pieces.
import { breakable, clamp, clock, make, onKey } from "./base.js";

const PIECE_SECONDS = 10;
const CONVERTED = "Converted for this browser.";

/**
 * Shows a source {address, name, duration, width, height, frame_rate, still}; address is "/videos/12" or "/uploads/ab".
 * Events: "time" whenever another moment is shown, "frame" for each frame on the screen, "mode" when pieces are used
 * instead of the file.
 */
export class Player extends EventTarget {
  #plays = false; // somebody wants it to play, also while a piece is on its way
  #failed = false; // the piece could not be had; the next seek asks again
  #loading = 0;
  #loaded = -Infinity;

  constructor(source, { muted = false, flipped = false } = {}) {
    super();
    this.source = source;
    this.piece = null;
    this.offset = this.wanted = null;
    this.rate = 1;
    this.frameSeconds = 1 / (source.frame_rate > 0 ? source.frame_rate : 25);
    this.presented = null; // {time, at}: the frame on the screen, and since when
    this.overlay = make("div", { class: "overlay" });
    this.screen = make("div", { class: "screen" });
    this.screen.style.aspectRatio = `${source.width || 16} / ${source.height || 9}`;
    this.screen.style.maxWidth = `calc(var(--tall, 45vh) * ${(source.width || 16) / (source.height || 9)})`;
    if (source.still) {
      this.video = null;
      this.image = make("img", { src: `${source.address}/file`, alt: source.name });
      this.image.addEventListener("error", () => (this.image.src = `${source.address}/thumbnail?side=720`), { once: true });
      this.screen.append(this.image, this.overlay);
    } else {
      // Until it plays or is sought, a frame that shows something: the first one of many videos is black.
      this.video = make("video", { playsinline: true, preload: "metadata", src: `${source.address}/file`, poster: `${source.address}/thumbnail?side=720` });
      this.video.muted = muted;
      this.screen.append(this.video, this.overlay);
      this.#listen();
    }
    this.button = make("button", { type: "button", class: "play", "aria-label": "Play", title: "Play or pause (Space)" });
    this.button.addEventListener("click", () => this.toggle());
    this.clock = make("span", { class: "clock" }, `${clock(0)} / ${clock(source.duration)}`);
    this.note = make("span", { class: "facts", role: "status" });
    this.tools = make("div", { class: "tools" }, this.button, this.clock, this.note);
    this.button.hidden = this.clock.hidden = source.still;
    this.caption = make("figcaption", {}, ...breakable(source.name));
    this.element = make("figure", { class: "player" }, this.caption, this.screen, this.tools);
    this.flip(flipped);
  }

  #listen() {
    const video = this.video;
    const tell = () => this.dispatchEvent(new Event("time"));
    const present = (now, { mediaTime, expectedDisplayTime }) => {
      this.presented = { time: this.#base() + mediaTime, at: expectedDisplayTime ?? now };
      this.dispatchEvent(new Event("frame"));
      video.requestVideoFrameCallback(present);
    };
    video.requestVideoFrameCallback?.(present);
    video.addEventListener("emptied", () => (this.presented = null));
    for (const name of ["play", "seeking"]) video.addEventListener(name, () => video.removeAttribute("poster"), { once: true });
    video.addEventListener("error", () => {
      if (this.piece === null) this.#usePieces();
      else {
        this.#failed = true;
        this.#say("This part cannot be shown.");
      }
    });
    video.addEventListener("loadedmetadata", () => {
      if (this.piece === null) {
        if (this.wanted !== null) video.currentTime = this.wanted;
        this.wanted = null;
        // A browser that knows the sound but not the pictures plays a black screen.
        if (video.videoWidth === 0) this.#usePieces();
        return;
      }
      video.playbackRate = this.rate;
      if (this.offset) video.currentTime = this.offset;
      this.offset = null;
      this.#say(CONVERTED);
      if (!this.#plays) return;
      this.play();
      // It is converted while this one plays; if that fails, it is asked for again when its turn comes.
      if (this.#hasNext()) fetch(this.#address(this.piece + 1), { headers: { Range: "bytes=0-0" } }).catch(() => {});
    });
    for (const name of ["timeupdate", "seeked", "loadeddata"]) video.addEventListener(name, tell);
    const step = () => {
      tell();
      if (!video.paused) requestAnimationFrame(step);
    };
    video.addEventListener("play", () => {
      this.#showState();
      requestAnimationFrame(step);
    });
    video.addEventListener("pause", () => this.#showState());
    video.addEventListener("ended", () => {
      if (this.#hasNext() && this.offset === null) this.#load(this.piece + 1, 0);
      else {
        this.#plays = false;
        this.dispatchEvent(new Event("end"));
      }
    });
    this.addEventListener("time", () => {
      this.clock.textContent = `${clock(this.time)} / ${clock(this.source.duration)}`;
    });
  }

  #showState() {
    const playing = !this.video.paused;
    this.button.classList.toggle("playing", playing);
    this.button.setAttribute("aria-label", playing ? "Pause" : "Play");
  }

  #say(text) {
    this.note.textContent = text;
  }

  #usePieces() {
    const time = this.wanted ?? this.video.currentTime;
    this.#say(CONVERTED);
    this.dispatchEvent(new Event("mode"));
    this.piece = -1;
    this.seek(time);
  }

  #hasNext() {
    return this.piece !== null && (this.piece + 1) * PIECE_SECONDS < this.source.duration - 0.1;
  }

  #address(piece) {
    return `${this.source.address}/preview?piece=${piece}`;
  }

  #load(piece, offset) {
    this.piece = piece;
    this.offset = offset;
    this.#failed = false;
    clearTimeout(this.#loading);
    // Who drags over a timeline passes pieces that need not be converted.
    const pause = performance.now() - this.#loaded < 500 ? 250 : 0;
    this.#loading = setTimeout(() => {
      this.#loaded = performance.now();
      this.video.src = this.#address(piece);
    }, pause);
    this.dispatchEvent(new Event("time"));
  }

  /** Seconds of what is shown. */
  get time() {
    if (this.video === null) return 0;
    if (this.piece === null) return this.wanted ?? this.video.currentTime;
    return this.#base() + (this.offset ?? this.video.currentTime);
  }

  #base() {
    return this.piece === null ? 0 : Math.max(this.piece, 0) * PIECE_SECONDS;
  }

  /** Seconds at which the frame on the screen begins. */
  get shown() {
    return this.presented?.time ?? this.time;
  }

  /** The same, between frames: where a video that plays is at this instant. */
  shownNow() {
    if (this.presented === null) return this.time;
    if (this.paused) return this.presented.time;
    const since = clamp(performance.now() - this.presented.at, -100, 500) / 1000;
    return this.presented.time + since * this.video.playbackRate;
  }

  /** Until the moment that was sought is on the screen, two seconds at most. */
  settled() {
    const video = this.video;
    if (video === null || (video.readyState >= 2 && !video.seeking && this.offset === null)) return Promise.resolve();
    return new Promise((resolve) => {
      const stop = AbortSignal.timeout(2000);
      stop.addEventListener("abort", resolve);
      const look = () => video.readyState >= 2 && !video.seeking && this.offset === null && resolve();
      for (const name of ["seeked", "canplay", "loadeddata"]) video.addEventListener(name, look, { signal: stop });
    });
  }

  /** Show the frame at its time instead of the poster. */
  leavePoster() {
    if (this.video?.hasAttribute("poster")) this.seek(this.time);
  }

  /** So many frames further, or back. */
  step(frames) {
    this.pause();
    // Into the middle of the frame, so that no rounding shows the one before.
    this.seek(this.shown + (frames + 0.5) * this.frameSeconds);
  }

  get paused() {
    return this.video === null || this.video.paused;
  }

  seek(seconds) {
    if (this.video === null) return;
    const time = clamp(seconds, 0, Math.max(this.source.duration - 0.05, 0));
    if (this.piece === null) {
      if (this.video.readyState === 0) this.wanted = time;
      else this.video.currentTime = time;
      return;
    }
    const piece = Math.floor(time / PIECE_SECONDS);
    if (piece !== this.piece || this.#failed) this.#load(piece, time - piece * PIECE_SECONDS);
    else if (this.offset !== null) this.offset = time - piece * PIECE_SECONDS;
    else this.video.currentTime = time - piece * PIECE_SECONDS;
  }

  async play() {
    this.#plays = true;
    try {
      await this.video?.play();
    } catch {
      // Interrupted by a seek or a change of the source, which plays on by itself.
    }
  }

  pause() {
    this.#plays = false;
    this.video?.pause();
  }

  toggle() {
    if (this.paused) this.play();
    else this.pause();
  }

  /** Times as fast as usual. */
  setRate(rate) {
    this.rate = clamp(rate, 0.1, 8);
    if (this.video !== null) this.video.playbackRate = this.rate;
  }

  /** Show it mirrored left to right. */
  flip(flipped) {
    this.screen.classList.toggle("flipped", flipped);
  }

  /** Draw a frame around a part of the picture, [left, top, right, bottom] as shares; null removes it. */
  showBox(box) {
    this.overlay.querySelector(".box.match")?.remove();
    if (box !== null) showPart(this.overlay, box);
  }
}

/** Draw a frame around a part of a picture; true if the part is not most of the picture. */
export function showPart(picture, box) {
  if ((box[2] - box[0]) * (box[3] - box[1]) > 0.8) return false;
  const frame = make("span", { class: "box match" });
  placeBox(frame, box);
  picture.append(frame);
  return true;
}

/** Put an element where a box is. */
export function placeBox(element, [left, top, right, bottom]) {
  element.style.left = `${left * 100}%`;
  element.style.top = `${top * 100}%`;
  element.style.width = `${(right - left) * 100}%`;
  element.style.height = `${(bottom - top) * 100}%`;
}

/**
 * The keys of a player while the focus is in an element, with `wholePage` also while it is on nothing else of the page:
 * space plays, arrows move a second, comma and period a frame.
 */
export function playerKeys(element, player, { wholePage = false } = {}) {
  const use = (key, event) => {
    const far = event.shiftKey ? 5 : 1;
    if (key === " " && !event.target.closest("button, a, input, summary")) player.toggle();
    else if (key === "ArrowLeft") player.seek(player.time - far);
    else if (key === "ArrowRight") player.seek(player.time + far);
    else if (key === ",") player.step(-1);
    else if (key === ".") player.step(1);
    else return false;
  };
  onKey(use, element);
  if (wholePage) onKey((key, event) => element.isConnected && (event.target === document.body || event.target.id === "main") && use(key, event));
}
