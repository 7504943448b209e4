// Several videos of the library at once: selected by mouse and by key, put on lists, searched for copies, split into
// shots, removed.
import { Follower, api, make, say, showProgress, watchJob } from "./base.js";

const jobs = new Follower(watch);
const selected = new Set();
const bar = document.getElementById("selection");
const find = (id) => document.getElementById(id);
let anchor = null;
const cards = () => [...document.querySelectorAll("#results .card")];
const idOf = (card) => Number(card.dataset.id);
const changed = () => document.dispatchEvent(new Event("index-changed"));

/** Show on the cards and in the bar what is selected; called whenever the cards are new. */
export function showSelection() {
  for (const card of cards()) {
    const picked = selected.has(idOf(card));
    card.classList.toggle("picked", picked);
    card.querySelector("[data-pick]").checked = picked;
  }
  document.body.classList.toggle("selecting", selected.size > 0);
  bar.hidden = selected.size === 0 && find("work").hidden;
  find("selected").textContent = selected.size === 1 ? "1 video selected" : `${selected.size} videos selected`;
  const total = Number(find("results").dataset.total);
  find("select-all").hidden = total <= selected.size;
  find("select-all").textContent = `Select all ${total} that fit`;
}

function pick(card, on = !selected.has(idOf(card))) {
  if (on) selected.add(idOf(card));
  else selected.delete(idOf(card));
  anchor = card.dataset.id;
}

/** Everything from the last one that was picked to this one. */
function pickTo(card) {
  const all = cards();
  const from = all.findIndex((other) => other.dataset.id === anchor);
  const to = all.indexOf(card);
  for (const other of all.slice(Math.min(from < 0 ? to : from, to), Math.max(from, to) + 1)) selected.add(idOf(other));
}

function clear() {
  selected.clear();
  anchor = null;
  showSelection();
}

document.addEventListener("click", (event) => {
  const card = event.target.closest("#results .card");
  if (card === null || event.target.closest("[data-star], .tag")) return;
  const onBox = event.target.matches("[data-pick]");
  if (!onBox && !event.shiftKey && !event.ctrlKey && !event.metaKey) return;
  if (!onBox) event.preventDefault(); // a click on the picture would open it in another tab or window
  if (event.shiftKey) pickTo(card);
  else pick(card);
  showSelection();
});

async function star(card) {
  const button = card.querySelector("[data-star]");
  if (button === null) return;
  const on = button.getAttribute("aria-pressed") !== "true";
  try {
    await api("/api/lists", { method: "POST", body: { name: "favorites", [on ? "add" : "remove"]: [idOf(card)] } });
    button.setAttribute("aria-pressed", String(on));
    say(on ? "Added to the favorites." : "No favorite any more.", { seconds: 3 });
  } catch (error) {
    say(error.message);
  }
}
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-star]")) star(event.target.closest(".card"));
});

/** Keys on a card; true if it was one. */
export function selectionKey(event, card) {
  const key = event.key.toLowerCase();
  if ((event.ctrlKey || event.metaKey) && key === "a") for (const other of cards()) selected.add(idOf(other));
  else if (event.ctrlKey || event.metaKey || event.altKey) return false;
  else if (key === "escape" && selected.size) selected.clear();
  else if (card === null) return false;
  else if (key === "x" && event.shiftKey) pickTo(card);
  else if (key === "x") pick(card);
  else if (key === "f") star(card);
  else return false;
  event.preventDefault();
  showSelection();
  return true;
}

/** Arrow keys with Shift select both ends of the step. */
export function selectStep(from, to) {
  if (!selected.has(idOf(from))) pick(from, true);
  selected.add(idOf(to));
  showSelection();
}

find("select-none").addEventListener("click", clear);
find("select-all").addEventListener("click", async () => {
  try {
    const filter = new URLSearchParams(location.search);
    filter.delete("page");
    for (const id of await api(`/api/videos/numbers?${filter}`)) selected.add(id);
    showSelection();
  } catch (error) {
    say(error.message);
  }
});

/** Show a job of the server in the bar; resolves with its last state, or null if it did not come to its end. */
async function watch(job) {
  const work = find("work");
  try {
    work.hidden = bar.hidden = false;
    find("stop-work").onclick = () => api(`/api/jobs/${job.id}/stop`, { method: "POST" }).catch((error) => say(error.message));
    const ended = await watchJob(job.id, (state) => showProgress(work, state));
    if (ended.state === "done") return ended;
    say(ended.error || "Stopped; finished work is kept.");
  } finally {
    work.hidden = true;
    showSelection();
  }
  return null;
}

/** Begin a job, unless one is at work; resolves with its last state, or null. */
async function follow(begin) {
  if (!jobs.isBusy) return jobs.begin(begin);
  say("Wait until the work that is shown has ended, or stop it.");
  return null;
}

const post = (path, body) => () => api(path, { method: "POST", body });

const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
const unread = (failed) => (failed.length ? `; ${failed.length} could not be read: ${failed[0].cause}` : "");

find("seek-shots").addEventListener("click", async () => {
  const ended = await follow(post("/api/shots", { videos: [...selected] }));
  if (ended !== null) showShots(ended.result);
});

function showShots({ videos, failed }) {
  say(`Shots of ${count(videos, "video")} are known now${unread(failed)}.`);
  changed();
}

find("cut")?.addEventListener("click", async () => {
  const dialog = find("cutting");
  if ((await ask(dialog)) !== "split") return;
  const ended = await follow(post("/api/clips", { videos: [...selected], folder: dialog.querySelector("input").value }));
  if (ended !== null) showFiles(ended.result);
});

function showFiles({ videos, files, folder, failed }) {
  say(`${count(files, "file")} of ${count(videos, "video")} in ${folder}${unread(failed)}.`, { seconds: 12 });
  changed();
}

function showCopies({ videos, found, failed }) {
  const panel = find("copies-found");
  const words = `${found.length} of ${count(videos, "video")} ${found.length === 1 ? "has" : "have"} copies${failed.length ? `; ${failed.length} could not be read` : ""}`;
  const rows = found.map(({ id, name, copies }) =>
    make("li", {}, make("a", { href: `/videos/${id}` }, name), ": ",
      ...copies.flatMap((copy, index) => [index ? ", " : "", make("a", { href: `/match?video=${id}&target=${copy.id}` }, copy.name), ` (${copy.score.toFixed(2)})`])));
  panel.replaceChildren(make("h2", {}, words, make("button", { type: "button", class: "small", onclick: () => (panel.hidden = true) }, "Close")), make("ul", {}, ...rows));
  panel.hidden = false;
  panel.scrollIntoView({ block: "nearest" });
}
find("seek-copies").addEventListener("click", async () => {
  const ended = await follow(post("/api/videos/copies", { videos: [...selected] }));
  if (ended !== null) showCopies(ended.result);
});

/** Ask with a dialog; resolves with the value of the button, empty if it was closed. */
export function ask(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true }));
}

find("to-list")?.addEventListener("click", async () => {
  const dialog = find("listing");
  const choice = await ask(dialog);
  if (!choice) return;
  const name = dialog.querySelector("input").value.trim();
  try {
    await api("/api/lists", { method: "POST", body: { name, [choice]: [...selected] } });
    say(choice === "add" ? `Added to "${name}".` : `Taken off "${name}".`);
    changed();
  } catch (error) {
    say(error.message);
  }
});

find("remove")?.addEventListener("click", async () => {
  const count = selected.size;
  find("removing-words").textContent = count === 1 ? "1 video is selected." : `${count} videos are selected.`;
  if ((await ask(find("removing"))) !== "remove") return;
  const ended = await follow(post("/api/videos/remove", { videos: [...selected] }));
  if (ended === null) return;
  const { removed, paths } = ended.result;
  clear();
  changed();
  const undo = removed <= paths.length && { label: "Add again", run: () => api("/api/index", { method: "POST", body: { paths } }).then((job) => watchJob(job.id)).then(changed, (error) => say(error.message)) };
  say(`Removed ${removed} from the index.`, { action: undo || null });
});

// Lists themselves.
document.addEventListener("click", async (event) => {
  const { rename, drop } = event.target.dataset ?? {};
  if (rename === undefined && drop === undefined) return;
  const name = rename ?? drop;
  const newName = rename === undefined ? null : prompt(`New name for the list "${name}"`, name);
  if (rename !== undefined && !newName) return;
  if (rename === undefined && !confirm(`Delete the list "${name}"? Its videos stay.`)) return;
  try {
    await api("/api/lists/rename", { method: "POST", body: { name, new_name: newName } });
    const words = new URLSearchParams(location.search);
    if (newName === null) words.delete("list");
    else words.set("list", newName.trim());
    location.search = words;
  } catch (error) {
    say(error.message);
  }
});

// What was at work when the page was opened.
for (const [kind, show] of [["copies", showCopies], ["shots", showShots], ["clips", showFiles]]) {
  jobs.join(kind, (job) => job.video === null).then((ended) => ended && show(ended.result)).catch((error) => say(error.message));
}
