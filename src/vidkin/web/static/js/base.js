// What every page uses: requests to the API, messages, and watching jobs.

// Tabs take turns where they wait for the same kind of work.
const tab = crypto.getRandomValues(new Uint32Array(2)).join("-");
let tickets = 0;

/**
 * Ask the API; resolves with the JSON answer, rejects with an Error whose message says what is wrong. If `onWait` is
 * given, it is called with the place in the line while the request waits for others: 1 is the next, 0 has begun.
 */
export async function api(path, { method = "GET", body, signal, onWait } = {}) {
  const options = { method, signal, headers: { Accept: "application/json" } };
  if (onWait) {
    const ticket = `${tab}.${(tickets += 1)}`;
    Object.assign(options.headers, { "X-Vidkin-Tab": tab, "X-Vidkin-Ticket": ticket });
    const timer = setInterval(async () => {
      const answer = await fetch(`/api/searches/${ticket}`, { signal }).catch(() => null);
      if (answer?.status === 200) onWait((await answer.json()).position);
    }, 1000);
    return send(path, options, body).finally(() => clearInterval(timer));
  }
  return send(path, options, body);
}

async function send(path, options, body) {
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer; is `vidkin serve` still running?");
  }
  const value = /^application\/(problem\+)?json/.test(answer.headers.get("Content-Type")) ? await answer.json() : null;
  if (!answer.ok) throw new Error(value?.detail ?? `The server answered ${answer.status}.`);
  return value;
}

/**
 * Show a line at the bottom of the page for some seconds; screen readers read it. With an action {label, run} it has
 * a button, and stays longer.
 */
export function say(text, { seconds = 6, action = null } = {}) {
  const line = make("p", {}, text);
  if (action !== null) {
    line.append(" ", make("button", { type: "button", onclick: () => (line.remove(), action.run()) }, action.label));
  }
  messages.append(line);
  setTimeout(() => line.remove(), (action === null ? seconds : 20) * 1000);
}

// As much room as the messages take is left at the end of the page; they stay above the bar of what is selected.
const messages = document.getElementById("messages");
for (const [name, element] of [["--said", messages], ["--bar", document.getElementById("selection")]]) {
  if (element) new ResizeObserver(() => document.documentElement.style.setProperty(name, `${element.offsetHeight}px`)).observe(element);
}

/** Follow a job by its events; calls onState with every state and resolves with the last one. */
export function watchJob(id, onState = () => {}) {
  return new Promise((resolve, reject) => {
    const events = new EventSource(`/api/jobs/${id}/events`);
    let failures = 0;
    events.onmessage = (event) => {
      failures = 0;
      const state = JSON.parse(event.data);
      onState(state);
      if (state.state !== "running") {
        events.close();
        resolve(state);
      }
    };
    events.onerror = () => {
      failures += 1;
      if (failures > 5) {
        events.close();
        reject(new Error("The server does not answer; is `vidkin serve` still running?"));
      }
    };
  });
}

/** The job of a kind that is at work, for a page that is opened meanwhile; undefined if there is none. */
async function runningJob(kind) {
  const [job] = await api(`/api/jobs?kind=${kind}&state=running`);
  return job;
}

/**
 * Follows one job at a time with `follow(job)`. The place is taken before the server is asked to begin: neither a second
 * click nor the look for what was at work when the page was opened follows the same job again.
 */
export class Follower {
  #follow;
  #work = null;
  #begun = 0;

  constructor(follow) {
    this.#follow = follow;
  }

  get isBusy() {
    return this.#work !== null;
  }

  /** Resolves when nothing is followed. */
  async idle() {
    while (this.#work !== null) await this.#work;
  }

  /**
   * Follow the job that `ask()` resolves with, null for none; resolves with what `follow` returns, or null if none
   * could begin.
   */
  async begin(ask) {
    if (this.isBusy) return null;
    this.#begun += 1;
    const work = Promise.resolve().then(ask).then((job) => job && this.#follow(job)).catch((error) => (say(error.message, { seconds: 12 }), null));
    this.#work = work;
    try {
      return await work;
    } finally {
      this.#work = null;
    }
  }

  /** Follow what of a kind is at work, for a page that is opened meanwhile; resolves with null if there is nothing. */
  async join(kind, isOurs = () => true) {
    const before = this.#begun;
    const job = await runningJob(kind);
    if (job === undefined || before !== this.#begun || !isOurs(job)) return null;
    return this.begin(() => job);
  }
}

/** How far a job is, in words: what it does, how much is done, how fast, and the time that is left. */
export function progressWords({ done, total, detail, rate, seconds_left: left, seconds }) {
  const pace = rate >= 1 ? `${rate.toFixed(rate < 10 ? 1 : 0)} a second` : rate > 0 ? `${Math.round(60 * rate)} a minute` : "";
  const words = [detail || "starting", total ? `${done} of ${total}` : "", total && done < total ? pace : ""];
  if (left !== null && left !== undefined && done < total) words.push(`about ${span(left)} left`);
  else if (seconds >= 1) words.push(`${span(seconds)} so far`);
  return words.filter(Boolean).join(", ");
}

function span(seconds) {
  if (seconds < 90) return `${Math.max(Math.round(seconds), 1)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** Show how far a job is in a panel with a progress bar and a line of words. */
export function showProgress(panel, state) {
  const bar = panel.querySelector("progress");
  if (state.total) [bar.max, bar.value] = [state.total, state.done];
  else bar.removeAttribute("value");
  panel.querySelector("p").textContent = progressWords(state);
}

const CONTROLS = "a, button, input, select, summary";

/** Put one element in the place of another, unless they are equal; the keyboard stays at the same control. */
export function putInPlace(old, one) {
  if (old.isEqualNode(one)) return;
  const at = [...old.querySelectorAll(CONTROLS)].indexOf(document.activeElement);
  old.replaceWith(one);
  if (at >= 0) one.querySelectorAll(CONTROLS)[at]?.focus({ preventScroll: true });
}

/** Bytes as people read them, as the server writes them. */
export function fileSize(bytes) {
  let amount = bytes;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (Math.round(amount * 10) / 10 < 1000) return `${unit === "B" ? amount : amount.toFixed(1)}\u00a0${unit}`;
    amount /= 1000;
  }
  return `${amount.toFixed(1)}\u00a0TB`;
}

/** What a search does while others are served first, from its place in the line. */
export function waiting(position, busy = "Searching...") {
  if (position <= 0) return busy;
  return position === 1 ? "Waiting: next in line..." : `Waiting: ${position - 1} other searches come first...`;
}

/** A name as children of an element: lines may end after an underscore, so that none has to end inside a word. */
export function breakable(name) {
  return name.split(/(?<=_)/).flatMap((part) => (part.endsWith("_") ? [part, make("wbr")] : [part]));
}

/** Times in seconds closer together than this count as equal, as on the server (`vidkin.media.frames`). */
export const SAME_TIME = 1e-6;

/** Seconds as m:ss.s or h:mm:ss.s, as the server writes them; with so many digits behind the point. */
export function clock(seconds, digits = 1) {
  const unit = 10 ** digits;
  const parts = Math.floor(Math.max(seconds, 0) * unit + 0.5 + 1e-9);
  const minutes = Math.floor(parts / (60 * unit));
  const rest = parts % (60 * unit);
  const tail = `${String(Math.floor(rest / unit)).padStart(2, "0")}.${String(rest % unit).padStart(digits, "0")}`;
  return minutes < 60 ? `${minutes}:${tail}` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${tail}`;
}

/** An element with attributes (those of properties beginning with "on" are listeners) and children. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

// Keys of every page: ? shows them, g and a letter goes to a section.

const help = document.getElementById("help");
document.getElementById("help-button")?.addEventListener("click", () => help.showModal());
let going = -Infinity; // when G was pressed
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.target.closest?.("input:not([type=checkbox]), select, textarea")) return;
  if (event.key === "?") help.showModal();
  else if (event.key === "g") going = performance.now();
  else if (performance.now() - going < 1500) {
    going = -Infinity;
    const link = [...document.querySelectorAll("nav[aria-label='Pages'] a")].find((one) => one.dataset.key === event.key.toUpperCase());
    if (link === undefined) return;
    event.stopImmediatePropagation(); // the same letter means something else on the page
    link.click();
  } else return;
  event.preventDefault();
});

// A name that is there already is selected, to be typed over; Enter saves it.
document.addEventListener("focusin", ({ target }) => target.matches?.("[data-name]") && setTimeout(() => target.select()));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches?.("[data-name]") || event.target.form !== null) return;
  event.preventDefault();
  event.target.closest(".bar").querySelector("button").click();
});

// Menus close by a click or the focus elsewhere, by choosing, and by Escape.
function closeMenus(target) {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(target)) menu.open = false;
}
for (const name of ["pointerdown", "focusin"]) document.addEventListener(name, (event) => closeMenus(event.target));
document.addEventListener("click", (event) => event.target.closest?.(".menu a") && closeMenus(null));
document.addEventListener("keydown", (event) => {
  const menu = event.target.closest?.("details.menu[open]");
  if (event.key !== "Escape" || !menu) return;
  event.stopImmediatePropagation(); // the page has other uses of this key
  closeMenus(null);
  menu.querySelector("summary").focus();
});

// Pictures that are on their way shimmer; what is there does not.
const there = (image) => image.closest(".picture, .frame")?.classList.add("there");
for (const name of ["load", "error"]) document.addEventListener(name, (event) => event.target.matches?.("img") && there(event.target), true);
for (const image of document.images) if (image.complete) there(image);
