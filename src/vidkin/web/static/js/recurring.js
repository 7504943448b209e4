// What recurs: groups, one timeline a file, and a part in large whose ends are dragged or moved by keys.
import { RequestError, api, arrowOf, byId, clamp, clock, dragPointer, morph, onClick, onKey, onSubmit, placeMoment, placeStretch, post, refresher, say, shareAt, warnUnsaved } from "./base.js";
import { Jobs } from "./jobs.js";
import { Player, playerKeys } from "./player.js";
import { filmstrip } from "./timeline.js";

const AROUND = 5; // seconds shown on both sides of a part
const form = byId("wish");
const jobs = new Jobs(byId("progress"), {
  onEnd: async ({ state }) => {
    isOld = state === "done" && changedParts().length > 0;
    if (isOld) say("The search has ended. Save or revert your changes to see what it found.", { seconds: 20 });
    else if (state === "done") await refresh();
  },
});
const refresh = refresher(show);
let isOld = false; // a search ended while changes were not saved
let chosen = null; // {button, part, file, view}
let player = null;

const editable = () => byId("found")?.dataset.editable === "yes";
const allParts = () => [...document.querySelectorAll(".part")];
const partOf = (button) => JSON.parse(button.dataset.part);
/** Where a part is, and whether it belongs to its group, as it was changed or as the server has it. */
const stateOf = ({ dataset }) => {
  const { start, end, belongs = true } = JSON.parse(dataset.change ?? dataset.part);
  return { start, end, belongs };
};
/** The parts that were changed, of a group or of all. */
const changedParts = (key = null) => allParts().filter((button) => button.dataset.change && (key === null || partOf(button).key === key));
const row = (key) => document.querySelector(`#groups [data-key="${key}"]`);

// The page as the server has it now.

function show(page) {
  if (page.getElementById("found") === null) return;
  const last = chosen && { file: chosen.file.id, start: stateOf(chosen.button).start };
  const focus = document.activeElement?.closest(".end")?.id;
  closePlayer();
  if (byId("editor")) {
    byId("editor").hidden = true;
    byId("groups").closest("section").before(byId("editor")); // where the server has it
  }
  chosen = null;
  isOld = false;
  morph(byId("found"), page.getElementById("found"));
  place();
  const distance = (button) => Math.abs(partOf(button).start - last.start);
  const [nearest] = last ? allParts().filter((button) => button.closest(".file").dataset.id === last.file).sort((one, other) => distance(one) - distance(other)) : [];
  if (nearest !== undefined) choose(nearest, { focus });
}

/** Put the parts where they are in their files; the policy of the page forbids styles in its text. */
function place() {
  for (const block of document.querySelectorAll(".line span")) placeStretch(block, Number(block.dataset.left), Number(block.dataset.left) + Number(block.dataset.wide), 1);
}

async function find() {
  if (jobs.isBusy) return say("A search is running; stop it to search with other settings.");
  const { least, shortest, inside, by } = form.elements;
  const body = { least: Number(least.value), shortest: Number(shortest.value), inside: inside.value === "yes", by: by?.disabled === false ? by.value : "picture" };
  await jobs.begin(() => post("/api/recurring", body));
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
  const { start, end } = stateOf(button);
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
  if (focus) byId(focus).focus({ preventScroll: true });
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

const frame = () => 1 / (chosen.file.source?.frame_rate > 0 ? chosen.file.source.frame_rate : 25);

function seek(time) {
  player?.seek(Math.min(time, Math.max(chosen.file.duration - frame(), 0)));
}

function showNow() {
  if (chosen === null || player === null) return;
  const [from, to] = chosen.view;
  byId("now").hidden = player.time < from || player.time > to;
  placeMoment(byId("now"), player.time - from, to - from);
}

function draw() {
  const { button, part, file, view: [from, to] } = chosen;
  const { start, end, belongs } = stateOf(button);
  placeStretch(byId("span"), start - from, end - from, to - from);
  for (const [name, time] of [["start", start], ["end", end]]) {
    const handle = byId(name);
    placeMoment(handle, time - from, to - from);
    handle.setAttribute("aria-valuemax", file.duration.toFixed(2));
    handle.setAttribute("aria-valuenow", time.toFixed(3));
    handle.setAttribute("aria-valuetext", clock(time, 2));
    if (!editable()) handle.setAttribute("aria-disabled", "true");
  }
  byId("part-facts").textContent = `${clock(start, 2)} - ${clock(end, 2)}, ${(end - start).toFixed(2)} s${belongs ? "" : "; does not belong to the group"}`;
  button.querySelector(".times").textContent = `${clock(start)} - ${clock(end)}`;
  button.classList.toggle("apart", !belongs);
  const number = [...button.parentElement.children].indexOf(button);
  const block = button.closest(".file").querySelector(`.line [data-part="${number}"]`);
  placeStretch(block, start, end, file.duration);
  const isChanged = changedParts(part.key).length > 0;
  row(part.key)?.classList.toggle("changed", isChanged);
  if (!editable()) return;
  byId("save").disabled = !isChanged;
  byId("revert").disabled = !isChanged;
  byId("apart").textContent = belongs ? "Does not belong to it" : "Belongs to it";
}

function change(values) {
  chosen.button.dataset.change = JSON.stringify({ ...stateOf(chosen.button), ...values });
}

/** Move an end to the frame nearest to a time; the other end stays behind it by a frame or more. */
function move(name, time) {
  const { start, end } = stateOf(chosen.button);
  const step = frame();
  const wanted = Math.round(time / step) * step;
  const value = name === "start" ? clamp(wanted, 0, end - step) : clamp(wanted, start + step, chosen.file.duration);
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

// What is said of a group.

async function decide(key, verdict) {
  const item = row(key);
  const body = { verdict };
  if (verdict === "recurs") {
    body.name = item.querySelector("[name=name]").value;
    const parts = new Map(changedParts(key).map((button) => [partOf(button).place, stateOf(button)]));
    if (parts.size) body.occurrences = (await stored(key)).map(({ start, end }, place) => parts.get(place) ?? { start, end, belongs: true });
  }
  await api(`/api/recurring/groups/${key}`, { method: "PUT", body });
  for (const button of changedParts(key)) delete button.dataset.change;
  item?.querySelector("details").removeAttribute("open");
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
  const { part: { key }, button: current } = chosen;
  for (const button of changedParts(key)) {
    delete button.dataset.change;
    choose(button);
  }
  choose(current);
  if (isOld && changedParts().length === 0) refresh();
}

const keyAt = (button) => button.closest("[data-key]").dataset.key;
onClick({
  ".line [data-part]": (block) => choose(block.closest(".file").querySelectorAll(".part")[Number(block.dataset.part)]),
  ".part": (button) => choose(button),
  "#save": () => decide(chosen.part.key, "recurs"),
  "#revert": revert,
  "#apart": () => {
    change({ belongs: !stateOf(chosen.button).belongs });
    draw();
  },
  "[data-save]": (button) => decide(keyAt(button), "recurs"),
  "[data-reject]": (button) => decide(keyAt(button), "does not recur"),
  "[data-forget]": (button) => decide(keyAt(button), "forget"),
});
document.addEventListener("pointerdown", (event) => {
  const handle = event.target.closest(".end");
  if (handle === null || event.button !== 0 || !editable()) return;
  const [from, to] = chosen.view;
  handle.focus();
  event.preventDefault();
  dragPointer(event, handle, { least: 2, move: (moved) => move(handle.id, from + shareAt(moved, byId("zoom")) * (to - from)) });
});
onKey((key, event) => {
  const parts = allParts();
  const [right, down] = arrowOf(key);
  const next = { n: 1, p: -1 }[key];
  const handle = event.target.closest(".end");
  if (next !== undefined && parts.length) {
    const button = parts[chosen === null ? 0 : clamp(parts.indexOf(chosen.button) + next, 0, parts.length - 1)];
    choose(button);
    button.focus({ preventScroll: true });
  } else if (chosen === null) return false;
  else if (key === "[") byId("start").focus();
  else if (key === "]") byId("end").focus();
  else if ((right || down) && handle !== null && editable()) move(handle.id, stateOf(chosen.button)[handle.id] + (right - down) * frame() * (event.shiftKey ? 10 : 1));
  else return false;
});
document.addEventListener("focusin", ({ target }) => {
  if (chosen === null || !target.matches(".end")) return;
  const { start, end } = stateOf(chosen.button);
  seek(target.id === "start" ? start : Math.max(end - frame(), 0));
});
warnUnsaved(() => changedParts().length > 0);
if (form !== null) {
  /** What one file shows again is found by the picture, and only by it. */
  const allowRules = () => form.elements.by && (form.elements.by.disabled = form.elements.inside.value === "yes");
  form.addEventListener("change", allowRules);
  allowRules();
  onSubmit(form, find);
  place();
  const joined = await jobs.join("recurring");
  if (joined === null && byId("found").dataset.behind) await find();
}
