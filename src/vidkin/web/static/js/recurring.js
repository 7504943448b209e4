// What recurs: groups, one timeline a file, and a part in large whose ends are dragged or moved by keys.
import { RequestError, api, byId, clock, dragPointer, keyOf, placeStretch, refresher, say, shareAt, warnUnsaved } from "./base.js";
import { Follower, followJob } from "./jobs.js";
import { Player, playerKeys } from "./player.js";
import { filmstrip } from "./timeline.js";

const AROUND = 5; // seconds shown on both sides of a part
const form = byId("wish");
const jobs = new Follower(follow);
const refresh = refresher(show);
let isOld = false; // a search ended while changes were not saved
let changes = new Map(); // key of a group -> {place: {start, end, belongs}}
let chosen = null; // {button, part, file, view}
let player = null;

const editable = () => byId("found")?.dataset.editable === "yes";
const partOf = (button) => JSON.parse(button.dataset.part);
const changeOf = (part) => changes.get(part.key)?.get(part.place) ?? { start: part.start, end: part.end, belongs: true };
const row = (key) => document.querySelector(`#groups [data-key="${key}"]`);

// The page as the server has it now.

function show(page) {
  if (page.getElementById("found") === null) return;
  const kept = chosen === null ? null : { file: chosen.file.id, start: changeOf(chosen.part).start };
  const focus = document.activeElement?.closest(".end")?.id;
  close();
  changes = new Map();
  isOld = false;
  const refocus = keepFocus();
  byId("found").replaceWith(page.getElementById("found"));
  place();
  refocus();
  if (kept === null) return;
  const buttons = [...document.querySelectorAll(`.file[data-id="${kept.file}"] .part`)];
  const nearest = buttons.sort((one, other) => Math.abs(partOf(one).start - kept.start) - Math.abs(partOf(other).start - kept.start))[0];
  if (nearest !== undefined) choose(nearest, { focus });
}

/** Remembers where the keyboard is in the list; what it returns brings it back there. */
function keepFocus() {
  const places = (key) => [...document.querySelectorAll(`#found [data-key="${key}"]:is(li, tr, section, article) :is(a, button, input, select)`)];
  const key = document.activeElement?.closest("#found [data-key]")?.dataset.key;
  const at = places(key).indexOf(document.activeElement);
  return () => at >= 0 && places(key)[at]?.focus({ preventScroll: true });
}

/** Put the parts where they are in their files; the policy of the page forbids styles in its text. */
function place() {
  for (const block of document.querySelectorAll(".line span")) placeStretch(block, Number(block.dataset.left), Number(block.dataset.left) + Number(block.dataset.wide), 1);
}

// Searching.

async function find() {
  if (jobs.isBusy) return say("A search is running; stop it to search with other settings.");
  const { least, shortest, inside, by } = form.elements;
  const body = { least: Number(least.value), shortest: Number(shortest.value), inside: inside.value === "yes", by: by?.disabled === false ? by.value : "picture" };
  await jobs.begin(() => api("/api/recurring", { method: "POST", body }));
}

function follow(job) {
  return followJob(job, byId("progress"), {
    onEnd: async ({ state }) => {
      isOld = state === "done" && changes.size > 0;
      if (isOld) say("The search has ended. Save or revert your changes to see what it found.", { seconds: 20 });
      else if (state === "done") await refresh();
    },
  });
}

// A part in large.

function choose(button, { focus = null } = {}) {
  const item = button.closest(".file");
  const source = JSON.parse(item.dataset.source);
  const file = { id: item.dataset.id, duration: Number(item.dataset.duration), source };
  document.querySelector(".part[aria-current]")?.removeAttribute("aria-current");
  button.setAttribute("aria-current", "true");
  for (const block of document.querySelectorAll(".line .chosen")) block.classList.remove("chosen");
  const number = [...item.querySelectorAll(".part")].indexOf(button);
  item.querySelector(`.line [data-part="${number}"]`)?.classList.add("chosen");
  const part = partOf(button);
  const isSameFile = chosen?.file.id === file.id && player !== null;
  const { start, end } = changeOf(part);
  chosen = { button, part, file, view: [Math.max(0, start - AROUND), Math.min(file.duration, end + AROUND)] };
  byId("editor").hidden = false;
  byId("editor").className = `panel color${part.color}`;
  byId("part-title").textContent = `${part.letter}${part.name ? `, ${part.name}` : ""} in ${part.file}`;
  if (byId("editor").parentElement !== item) item.append(byId("editor")); // below its timeline
  if (!isSameFile) openPlayer(source);
  showFrames();
  draw();
  seek(start);
  byId("editor").scrollIntoView({ block: "nearest" });
  if (focus) byId(focus)?.focus({ preventScroll: true });
}

/** The frames between which the ends are moved. */
function showFrames() {
  const { file: { source }, view } = chosen;
  byId("zoom").querySelector(".film")?.remove();
  if (source !== null) byId("zoom").prepend(filmstrip(source, ...view));
}

function openPlayer(source) {
  closePlayer();
  if (source === null) return;
  player = new Player(source, { muted: true });
  byId("player").append(player.element);
  playerKeys(player.element, player);
  player.addEventListener("time", showNow);
}

function closePlayer() {
  player?.pause?.();
  player?.element.remove();
  player = null;
}

function close() {
  closePlayer();
  chosen = null;
}

const frame = () => 1 / (chosen.file.source?.frame_rate > 0 ? chosen.file.source.frame_rate : 25);

function seek(time) {
  player?.seek(Math.min(time, Math.max(chosen.file.duration - frame(), 0)));
}

function showNow() {
  if (chosen === null || player === null) return;
  const [from, to] = chosen.view;
  byId("now").hidden = player.time < from || player.time > to;
  byId("now").style.left = `${(100 * (player.time - from)) / (to - from)}%`;
}

function draw() {
  const { part, file, view: [from, to] } = chosen;
  const { start, end, belongs } = changeOf(part);
  const at = (time) => `${(100 * (time - from)) / (to - from)}%`;
  placeStretch(byId("span"), start - from, end - from, to - from);
  for (const [name, time] of [["start", start], ["end", end]]) {
    const handle = byId(name);
    handle.style.left = at(time);
    handle.setAttribute("aria-valuemax", file.duration.toFixed(2));
    handle.setAttribute("aria-valuenow", time.toFixed(3));
    handle.setAttribute("aria-valuetext", clock(time, 2));
    if (!editable()) handle.setAttribute("aria-disabled", "true");
  }
  byId("part-facts").textContent = `${clock(start, 2)} - ${clock(end, 2)}, ${(end - start).toFixed(2)} s${belongs ? "" : "; does not belong to the group"}`;
  chosen.button.querySelector(".times").textContent = `${clock(start)} - ${clock(end)}`;
  chosen.button.classList.toggle("apart", !belongs);
  const number = [...chosen.button.parentElement.children].indexOf(chosen.button);
  const block = chosen.button.closest(".file").querySelector(`.line [data-part="${number}"]`);
  placeStretch(block, start, end, file.duration);
  const isChanged = changes.has(part.key);
  const unsaved = row(part.key)?.querySelector(".unsaved");
  if (unsaved) unsaved.hidden = !isChanged;
  if (!editable()) return;
  byId("save").disabled = !isChanged;
  byId("revert").disabled = !isChanged;
  byId("apart").textContent = belongs ? "Does not belong to it" : "Belongs to it";
}

function change(values) {
  const { part } = chosen;
  const group = changes.get(part.key) ?? new Map();
  group.set(part.place, { ...changeOf(part), ...values });
  changes.set(part.key, group);
}

/** Move an end to the frame nearest to a time; the other end stays behind it by a frame or more. */
function move(name, time) {
  const { start, end } = changeOf(chosen.part);
  const step = frame();
  const wanted = Math.round(time / step) * step;
  const value = name === "start" ? Math.min(Math.max(wanted, 0), end - step) : Math.max(Math.min(wanted, chosen.file.duration), start + step);
  change({ [name]: value });
  const [from, to] = chosen.view;
  if (value < from || value > to) {
    chosen.view = [Math.max(0, Math.min(from, value - AROUND)), Math.min(chosen.file.duration, Math.max(to, value + AROUND))];
    showFrames();
  }
  draw();
  // The end is when the last frame leaves the screen: that frame is shown.
  seek(name === "start" ? value : Math.max(value - step, 0));
}

function drag(event, handle) {
  const [from, to] = chosen.view;
  handle.focus();
  event.preventDefault();
  dragPointer(event, handle, { least: 2, move: (moved) => move(handle.id, from + shareAt(moved, byId("zoom")) * (to - from)) });
}

// What is said of a group.

async function decide(key, verdict) {
  const item = row(key);
  const body = { verdict };
  if (verdict === "recurs") {
    body.name = item.querySelector("[name=name]").value;
    const parts = new Map();
    for (const [place, values] of changes.get(key) ?? []) parts.set(place, values);
    if (parts.size) body.occurrences = (await stored(key)).map(({ start, end }, place) => parts.get(place) ?? { start, end, belongs: true });
  }
  await api(`/api/recurring/groups/${key}`, { method: "PUT", body });
  changes.delete(key);
  await refresh();
  say({ recurs: "Saved.", "does not recur": "Marked as not recurring; undo it below.", forget: "Verdict undone." }[verdict]);
}

/** The occurrences of a group as the server has them: some may be of files on another page. */
async function stored(key) {
  const list = await api("/api/recurring");
  const group = list.groups.find((one) => one.key === key);
  if (group === undefined) throw new RequestError("This group has changed since; reload the page.");
  return group.occurrences;
}

function revert() {
  const { key } = chosen.part;
  const buttons = [...document.querySelectorAll(".part")].filter((button) => partOf(button).key === key);
  const current = chosen.button;
  changes.delete(key);
  for (const button of buttons) choose(button);
  choose(current);
  if (isOld && changes.size === 0) refresh();
}

document.addEventListener("click", (event) => {
  const block = event.target.closest(".line [data-part]");
  if (block !== null) return choose(block.closest(".file").querySelectorAll(".part")[Number(block.dataset.part)]);
  const button = event.target.closest("button");
  if (button === null) return;
  const key = button.closest("[data-key]")?.dataset.key;
  if (button.matches(".part")) choose(button);
  else if (button.id === "save") decide(chosen.part.key, "recurs");
  else if (button.id === "revert") revert();
  else if (button.id === "apart") {
    change({ belongs: !changeOf(chosen.part).belongs });
    draw();
  } else if ("save" in button.dataset) decide(key, "recurs");
  else if ("reject" in button.dataset) decide(key, "does not recur");
  else if ("forget" in button.dataset) decide(key, "forget");
});
document.addEventListener("pointerdown", (event) => {
  const handle = event.target.closest(".end");
  if (handle !== null && chosen !== null && event.button === 0 && editable()) drag(event, handle);
});
document.addEventListener("keydown", (event) => {
  const key = keyOf(event);
  if (key === null) return;
  const parts = [...document.querySelectorAll(".part")];
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1 }[key];
  const handle = event.target.closest(".end");
  const next = { n: 1, p: -1 }[key];
  if (next !== undefined && parts.length) {
    const at = chosen === null ? -1 : parts.indexOf(chosen.button);
    const button = parts[at < 0 ? 0 : Math.min(Math.max(at + next, 0), parts.length - 1)];
    choose(button);
    button.focus({ preventScroll: true });
  } else if (chosen === null) return;
  else if (key === "[") byId("start").focus();
  else if (key === "]") byId("end").focus();
  else if (step !== undefined && handle !== null && editable()) move(handle.id, changeOf(chosen.part)[handle.id] + step * frame() * (event.shiftKey ? 10 : 1));
  else if (key === "s" && editable() && changes.has(chosen.part.key)) decide(chosen.part.key, "recurs");
  else return;
  event.preventDefault();
});
document.addEventListener("focusin", (event) => {
  const name = event.target.closest?.(".end")?.id;
  if (name === undefined || chosen === null) return;
  const { start, end } = changeOf(chosen.part);
  seek(name === "start" ? start : Math.max(end - frame(), 0));
});
warnUnsaved(() => changes.size > 0);
/** What one file shows again is found by the picture, and only by it. */
function allowRules() {
  if (form?.elements.by) form.elements.by.disabled = form.elements.inside.value === "yes";
}
form?.addEventListener("change", allowRules);
allowRules();
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  find();
});
place();
if (form !== null) {
  const joined = await jobs.join("recurring");
  if (joined === null && byId("found").dataset.behind) await find();
}
