// Several videos of the library at once: selected by mouse and by key, put on lists, searched for copies, split into
// shots, removed.
import { api, ask, byId as find, count, make, say } from "./base.js";
import { Follower, followJob, watchJob } from "./jobs.js";

const jobs = new Follower(watch);
const selected = new Set();
const bar = document.getElementById("selection");
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
  find("selected").textContent = `${count(selected.size, "video")} selected`;
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
  if (!onBox && !event.shiftKey) return; // with Ctrl the video opens in another tab, as any link does
  if (!onBox) event.preventDefault(); // a click with Shift would open it in another window
  if (event.shiftKey) pickTo(card);
  else pick(card);
  showSelection();
});

async function star(card) {
  const button = card.querySelector("[data-star]");
  if (button === null) return;
  const on = button.getAttribute("aria-pressed") !== "true";
  await api("/api/lists", { method: "POST", body: { name: "favorites", [on ? "add" : "remove"]: [idOf(card)] } });
  button.setAttribute("aria-pressed", String(on));
  say(on ? "Added to the favorites." : "Removed from the favorites.", { seconds: 3 });
}
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-star]")) star(event.target.closest(".card"));
});

/** Keys on a card, as `keyOf` has them; true if it was one. */
export function selectionKey(event, key, card) {
  if ((event.ctrlKey || event.metaKey) && event.key === "a" && !event.target.closest("input:not([type=checkbox]), select, textarea, dialog")) for (const other of cards()) selected.add(idOf(other));
  else if (key === "Escape" && selected.size) selected.clear();
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
  const filter = new URLSearchParams(location.search);
  filter.delete("page");
  for (const id of await api(`/api/videos/numbers?${filter}`)) selected.add(id);
  showSelection();
});

/** Show a job of the server in the bar; resolves with its last state, or null if it did not come to its end. */
async function watch(job) {
  bar.hidden = false;
  try {
    const ended = await followJob(job, find("work"));
    return ended.state === "done" ? ended : null;
  } finally {
    showSelection();
  }
}

/** Begin a job, unless one is at work; resolves with its last state, or null. */
async function follow(begin) {
  if (!jobs.isBusy) return jobs.begin(begin);
  say("Wait until the work that is shown has ended, or stop it.");
  return null;
}

const post = (path, body) => () => api(path, { method: "POST", body });

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

find("to-list")?.addEventListener("click", async () => {
  const dialog = find("listing");
  const choice = await ask(dialog);
  if (!choice) return;
  const name = dialog.querySelector("input").value.trim();
  await api("/api/lists", { method: "POST", body: { name, [choice]: [...selected] } });
  say(choice === "add" ? `Added to "${name}".` : `Removed from "${name}".`);
  changed();
});

find("remove")?.addEventListener("click", async () => {
  find("removing-words").textContent = `${count(selected.size, "video is", "videos are")} selected.`;
  if ((await ask(find("removing"))) !== "remove") return;
  const ended = await follow(post("/api/videos/remove", { videos: [...selected] }));
  if (ended === null) return;
  const { removed, paths } = ended.result;
  clear();
  changed();
  const undo = removed <= paths.length && { label: "Add again", run: () => api("/api/index", { method: "POST", body: { paths } }).then((job) => watchJob(job.id)).then(changed) };
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
  await api("/api/lists/rename", { method: "POST", body: { name, new_name: newName } });
  const words = new URLSearchParams(location.search);
  if (newName === null) words.delete("list");
  else words.set("list", newName.trim());
  location.search = words;
});

// What was at work when the page was opened.
for (const [kind, show] of [["copies", showCopies], ["shots", showShots], ["clips", showFiles]]) {
  jobs.join(kind, (job) => job.video === null).then((ended) => ended && show(ended.result));
}
