// What every page uses: requests to the API, messages, elements, keys and menus.

// Tabs take turns where they wait for the same kind of work.
const tab = crypto.getRandomValues(new Uint32Array(2)).join("-");
let tickets = 0;

export const NO_ANSWER = "The server does not answer; is `vidkin serve` still running?";

/** What the server refused, or could not do, in words for the page. */
export class RequestError extends Error {}

// What the server refuses and nothing else handles is said on the page.
window.addEventListener("unhandledrejection", (event) => {
  if (!(event.reason instanceof RequestError)) return;
  event.preventDefault();
  say(event.reason.message, { seconds: 10 });
});

/**
 * Ask the API; resolves with the JSON answer, rejects with a RequestError whose message says what is wrong. If `onWait` is
 * given, it is called with the place in the line while the request waits for others: 1 is the next, 0 has begun.
 */
export async function api(path, { method = "GET", body, signal, onWait } = {}) {
  const headers = { Accept: "application/json" };
  let timer = 0;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (onWait) {
    const ticket = `${tab}.${(tickets += 1)}`;
    Object.assign(headers, { "X-Vidkin-Tab": tab, "X-Vidkin-Ticket": ticket });
    timer = setInterval(async () => {
      const answer = await fetch(`/api/searches/${ticket}`, { signal }).catch(() => null);
      if (answer?.status === 200) onWait((await answer.json()).position);
    }, 1000);
  }
  const answer = await request(path, { method, signal, headers, body: JSON.stringify(body) }).finally(() => clearInterval(timer));
  const value = /^application\/(problem\+)?json/.test(answer.headers.get("Content-Type")) ? await answer.json() : null;
  if (!answer.ok) throw new RequestError(value?.detail ?? `The server answered ${answer.status}.`);
  return value;
}

/** Send a body to the API with POST. */
export const post = (path, body = undefined) => api(path, { method: "POST", body });

const request = (path, options) => fetch(path, options).catch((error) => {
  throw error.name === "AbortError" ? error : new RequestError(NO_ANSWER);
});

/**
 * Show a line at the bottom of the page for some seconds; screen readers read it. With an action {label, run} it has
 * a button, and stays longer. Returns the line, to remove it earlier.
 */
export function say(text, { seconds = 6, action = null } = {}) {
  const line = make("p", {}, text);
  if (action !== null) {
    line.append(" ", make("button", { type: "button", onclick: () => (line.remove(), action.run()) }, action.label));
  }
  messages.append(line);
  setTimeout(() => line.remove(), (action === null ? seconds : 20) * 1000);
  return line;
}

// As much room as the messages take is left at the end of the page; they stay above the bar of what is selected.
const messages = document.getElementById("messages");
for (const [name, element] of [["--said", messages], ["--bar", document.getElementById("selection")]]) {
  if (element) new ResizeObserver(() => document.documentElement.style.setProperty(name, `${element.offsetHeight}px`)).observe(element);
}

/** A page of the server as a document, by default the one that is shown, as it is now. */
export async function fetchPage(address = location.pathname + location.search) {
  const answer = await request(address, { headers: { Accept: "text/html" } });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

/**
 * A function that fetches a page, by default this one, and gives it to `show`. It resolves when what the newest request
 * brought is shown: an older one that comes late changes nothing.
 */
export function refresher(show) {
  let newest = null;
  return (address) => {
    const mine = fetchPage(address).then((page) => (mine === newest ? show(page) : newest));
    newest = mine;
    return mine;
  };
}

// What the page itself opens or shows, the server knows nothing of.
const OWN = ["hidden", "open", "aria-expanded"];
const nameOf = (node) => node.id || node.dataset?.key || node.dataset?.id || "";

/**
 * Make an element what another one is. What both have stays, by its id, `data-key` or `data-id`: the keyboard, what was
 * typed, frames on the screen. An element with `data-own` is left as and where it is.
 */
export function morph(old, one) {
  const focus = [];
  for (let at = document.activeElement; at !== null && old.contains(at); at = at.parentElement) focus.push(at);
  change(old, one);
  for (const image of old.querySelectorAll("img")) if (image.complete) there(image);
  // If the control is gone or was moved, the keyboard goes on at it, at the row around it, or at the first one of its list.
  focus.some((at) => {
    if (!at.isConnected) return false;
    for (const one of [at, at.querySelector("[tabindex], a, button, input, select")]) if (!at.contains(document.activeElement)) one?.focus({ preventScroll: true });
    return at.contains(document.activeElement);
  });
}

function change(old, one) {
  if (old.isEqualNode(one) || old.dataset?.own !== undefined) return;
  if (old.nodeType !== Node.ELEMENT_NODE) return void (old.data = one.data);
  for (const { name } of [...old.attributes]) if (!one.hasAttribute(name) && !OWN.includes(name)) old.removeAttribute(name);
  for (const { name, value } of one.attributes) if (old.getAttribute(name) !== value && !OWN.includes(name)) old.setAttribute(name, value);
  const left = [...old.childNodes];
  let last = null;
  for (const wanted of [...one.childNodes]) {
    const like = left.findIndex((node) => node.nodeName === wanted.nodeName && nameOf(node) === nameOf(wanted));
    const child = like < 0 ? wanted : left.splice(like, 1)[0];
    const at = last === null ? old.firstChild : last.nextSibling;
    if (child !== at) old.insertBefore(child, at);
    if (like >= 0) change(child, wanted);
    last = child;
  }
  for (const node of left) if (node.dataset?.own === undefined) node.remove();
  if (old.nodeName === "SELECT") old.value = one.value;
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

/** A number of things in words. */
export function count(number, noun, plural = `${noun}s`) {
  return `${number} ${number === 1 ? noun : plural}`;
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

const DRAWN = ["svg", "line", "polygon"];

/** An element with attributes (those of properties beginning with "on" are listeners) and children. */
export function make(name, attributes = {}, ...children) {
  const element = DRAWN.includes(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

export const byId = (id) => document.getElementById(id);

/** Listen to clicks by selector, `run(element, event)` for the first that fits; what comes to the page later is heard, too. */
export function onClick(runs) {
  document.addEventListener("click", (event) => {
    const selector = Object.keys(runs).find((one) => event.target.closest(one));
    if (selector !== undefined) runs[selector](event.target.closest(selector), event);
  });
}

/** Run with the fields of a form when it is sent; the page stays. */
export function onSubmit(form, run) {
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    run(form.elements);
  });
}

/** Run when a form is sent or a field of it changed, and not before typing has stopped. */
export function onInput(form, run) {
  let timer = 0;
  onSubmit(form, run);
  form?.addEventListener("input", ({ target }) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(form.elements, target), ["search", "number"].includes(target.type) ? 250 : 0);
  });
}

/** A card with a picture, a name and a line of facts, as lists of the server have them. */
export function card(href, picture, name, facts = "") {
  return make("li", { class: "card" }, make("a", { href },
    make("span", { class: "picture" }, make("img", { src: picture, alt: "", loading: "lazy", width: 240, height: 135 })),
    make("span", { class: "name" }, ...breakable(name))), facts && make("span", { class: "facts" }, facts));
}

/** Put an element where a moment is on a line that shows `duration` seconds. */
export function placeMoment(element, time, duration) {
  element.style.left = `${(100 * time) / duration}%`;
}

/** Put an element where a stretch lies on a line that shows `duration` seconds. */
export function placeStretch(element, start, end, duration) {
  placeMoment(element, start, duration);
  element.style.width = `${(100 * Math.max(end - start, 0)) / duration}%`;
  return element;
}

/** What this browser keeps under a name, of this or the last visit; `otherwise` if that is nothing. */
export function recall(storage, name, otherwise) {
  try {
    return JSON.parse(storage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise; // somebody else wrote it
  }
}

/** Ask with a dialog; resolves with the value of the button, empty if it was closed. */
export function ask(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true }));
}

/** A number in bounds. */
export const clamp = (value, low = 0, high = 1) => Math.min(Math.max(value, low), high);

/** Where a pointer is in an element from left to right, from 0 to 1. */
export function shareAt(event, element) {
  const box = element.getBoundingClientRect();
  return clamp((event.clientX - box.left) / box.width);
}

/**
 * Follow a pointer that was pressed, until it is released: `move(event)` once it is `least` pixels away, and at the end
 * `end(event, moved)`. An element that is the target gets its events wherever the pointer is.
 */
export function dragPointer(press, target, { move, end = () => {}, least = 0 }) {
  const stop = new AbortController();
  let moved = false;
  if (target !== window) target.setPointerCapture(press.pointerId);
  target.addEventListener("pointermove", (event) => {
    moved ||= Math.abs(event.clientX - press.clientX) >= least;
    if (moved) move(event);
  }, { signal: stop.signal });
  for (const name of ["pointerup", "pointercancel"]) {
    target.addEventListener(name, (event) => {
      stop.abort();
      end(event, moved && name === "pointerup");
    }, { signal: stop.signal });
  }
}

/** Warn before a page is left whose changes are not saved. */
export function warnUnsaved(isChanged) {
  window.addEventListener("beforeunload", (event) => {
    if (isChanged()) event.preventDefault();
  });
}

/** The key that an event means for the page, letters in lower case; null while text is typed, and for keys of the browser. */
export function keyOf(event) {
  if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.target.closest?.("input:not([type=checkbox]), select, textarea, dialog")) return null;
  return event.key.length === 1 ? event.key.toLowerCase() : event.key;
}

/** Listen to keys in an element, `run(key, event)`; what it answers with false is left to others. */
export function onKey(run, target = document) {
  target.addEventListener("keydown", (event) => {
    const key = keyOf(event);
    if (key !== null && run(key, event) !== false) event.preventDefault();
  });
}

/** Steps to the right and down of an arrow key; none of any other key. */
export const arrowOf = (key) => ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] })[key] ?? [0, 0];

// Keys of every page: ? shows them, g and a letter goes to a section.

const help = byId("help");
byId("help-button")?.addEventListener("click", () => help.showModal());
let going = -Infinity; // when G was pressed
onKey((key) => {
  if (key === "?") return help.showModal();
  if (key === "g") return (going = performance.now());
  const isGoing = performance.now() - going < 1500;
  going = -Infinity;
  const link = isGoing && document.querySelector(`nav[aria-label="Pages"] a[data-key="${CSS.escape(key.toUpperCase())}"]`);
  return link ? link.click() : false; // the page does not see it: the same letter may mean something else there
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

// A key presses what has it as `aria-keyshortcuts`: the last one that can be seen. Those of a row count inside of it only.
const KEYS = { "<": "Shift+,", ">": "Shift+.", "+": "Plus", "=": "Plus" };
onKey((key, event) => {
  if (event.repeat && /\w/.test(key)) return false;
  const letter = key.length === 1 ? key.toUpperCase() : key;
  const name = KEYS[key] ?? (event.shiftKey ? `Shift+${letter}` : letter);
  const control = [...document.querySelectorAll("[aria-keyshortcuts]")].findLast((one) =>
    one.ariaKeyShortcuts.split(" ").includes(name) && !one.disabled && one.checkVisibility() && (one.closest("[data-keys]")?.contains(event.target) ?? true));
  return control === undefined ? false : control.click();
});

// Pictures that are on their way shimmer; what is there does not.
const there = (image) => image.closest(".picture, .frame")?.classList.add("there");
for (const name of ["load", "error"]) document.addEventListener(name, (event) => event.target.matches?.("img") && there(event.target), true);
for (const image of document.images) if (image.complete) there(image);
