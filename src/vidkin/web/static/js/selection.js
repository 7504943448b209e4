// Several videos of the library at once: selected by mouse and by key, put on lists, searched for copies, split into
// shots, removed.
import { api, ask, byId as find, count, make, onClick, post, say } from "./base.js";
import { Jobs, watchJob } from "./jobs.js";

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

async function star(card) {
  const button = card.querySelector("[data-star]");
  if (button === null) return;
  const on = button.getAttribute("aria-pressed") !== "true";
  await post("/api/lists", { name: "favorites", [on ? "add" : "remove"]: [idOf(card)] });
  button.setAttribute("aria-pressed", String(on));
  say(on ? "Added to the favorites." : "Removed from the favorites.", { seconds: 3 });
}

/** Keys on a card, as `keyOf` has them; true if it was one. */
export function selectionKey(event, key, card) {
  if ((event.ctrlKey || event.metaKey) && event.key === "a" && !event.target.closest("input:not([type=checkbox]), select, textarea, dialog")) for (const other of cards()) selected.add(idOf(other));
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

// Work on what is selected: a job of the server, shown in the bar.

const jobs = new Jobs(find("work"), { onBegin: () => (bar.hidden = false) });

async function run(path, body, show) {
  if (jobs.isBusy) return say("Wait until the work that is shown has ended, or stop it.");
  finish(await jobs.begin(() => post(path, { videos: [...selected], ...body })), show);
}

function finish(ended, show) {
  showSelection();
  if (ended?.state === "done") show(ended.result);
}

const unread = (failed) => (failed.length ? `; ${failed.length} could not be read: ${failed[0].cause}` : "");

function showShots({ videos, failed }) {
  say(`Shots of ${count(videos, "video")} are known now${unread(failed)}.`);
  changed();
}

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

function showRemoved({ removed, paths }) {
  clear();
  changed();
  const undo = removed <= paths.length && { label: "Add again", run: () => post("/api/index", { paths }).then((job) => watchJob(job.id)).then(changed) };
  say(`Removed ${removed} from the index.`, { action: undo || null });
}

async function editList(name, newName) {
  await post("/api/lists/rename", { name, new_name: newName });
  const words = new URLSearchParams(location.search);
  if (newName === null) words.delete("list");
  else words.set("list", newName.trim());
  location.search = words;
}

onClick({
  "[data-star]": (button) => star(button.closest(".card")),
  "#results .card": (card, event) => {
    const onBox = event.target.matches("[data-pick]");
    if ((!onBox && !event.shiftKey) || event.target.closest(".tag")) return; // with Ctrl the video opens in another tab, as any link does
    if (!onBox) event.preventDefault(); // a click with Shift would open it in another window
    if (event.shiftKey) pickTo(card);
    else pick(card);
    showSelection();
  },
  "[data-rename]": ({ dataset: { rename } }) => {
    const name = prompt(`New name for the list "${rename}"`, rename);
    if (name) editList(rename, name);
  },
  "[data-drop]": ({ dataset: { drop } }) => confirm(`Delete the list "${drop}"? Its videos stay.`) && editList(drop, null),
  "#select-none": clear,
  "#select-all": async () => {
    const filter = new URLSearchParams(location.search);
    filter.delete("page");
    for (const id of await api(`/api/videos/numbers?${filter}`)) selected.add(id);
    showSelection();
  },
  "#seek-shots": () => run("/api/shots", {}, showShots),
  "#seek-copies": () => run("/api/videos/copies", {}, showCopies),
  "#cut": async () => {
    const dialog = find("cutting");
    if ((await ask(dialog)) === "split") run("/api/clips", { folder: dialog.querySelector("input").value }, showFiles);
  },
  "#to-list": async () => {
    const dialog = find("listing");
    const choice = await ask(dialog);
    if (!choice) return;
    const name = dialog.querySelector("input").value.trim();
    await post("/api/lists", { name, [choice]: [...selected] });
    say(choice === "add" ? `Added to "${name}".` : `Removed from "${name}".`);
    changed();
  },
  "#remove": async () => {
    find("removing-words").textContent = `${count(selected.size, "video is", "videos are")} selected.`;
    if ((await ask(find("removing"))) === "remove") run("/api/videos/remove", {}, showRemoved);
  },
});

// What was at work when the page was opened.
for (const [kind, show] of [["copies", showCopies], ["shots", showShots], ["clips", showFiles]]) {
  jobs.join(kind, (job) => job.video === null).then((ended) => finish(ended, show));
}
