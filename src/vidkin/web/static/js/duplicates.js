// Duplicates: groups that stay where they are while verdicts, filters and removals change them.
import { api, fileSize, make, runningJob, say, showProgress, watchJob } from "./base.js";
import { Player } from "./player.js";
import { Sync, SyncTools, exactParts } from "./sync.js";

const form = document.getElementById("wish");
const filter = document.getElementById("filter");
const progress = document.getElementById("progress");
const bar = document.getElementById("selection");
const STORE = `selected ${location.host}`;
let running = null;
let done = []; // what U takes back, the last one at the end
let playing = null; // {section, tools, players}
let turn = 0;

function wish() {
  const values = form.elements;
  return { threshold: Number(values.threshold.value), parts: values.parts.checked, rule: values.rule.value };
}

// The page as the server has it now, group by group: what did not change is not touched, and nothing jumps.

async function refresh({ stay = true } = {}) {
  const mine = (turn += 1);
  const answer = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (mine !== turn || page.getElementById("groups") === null) return;
  if (stay) putInPlace(page);
  else {
    stopPlaying();
    document.getElementById("groups").replaceWith(page.getElementById("groups"));
  }
  document.getElementById("tables").hidden = page.getElementById("tables").hidden;
  filter.hidden = page.getElementById("filter").hidden && filter.elements.q.value === "" && filter.elements.show.value === "all";
  showSelection();
}

function putInPlace(page) {
  const focused = document.activeElement?.closest(".member")?.dataset.id;
  const anchor = document.activeElement?.closest(".group") ?? [...document.querySelectorAll(".group")].find((group) => group.getBoundingClientRect().bottom > 0);
  const before = anchor?.getBoundingClientRect().top;
  document.getElementById("summary").replaceWith(page.getElementById("summary"));
  const list = document.getElementById("list");
  const left = new Map([...page.querySelectorAll(".group")].map((section) => [section.dataset.key, section]));
  let last = null;
  let anchored = anchor;
  for (const old of [...list.children]) {
    const ids = new Set([...old.querySelectorAll(".member")].map((member) => member.dataset.id).filter(Boolean));
    const successors = left.has(old.dataset.key)
      ? [left.get(old.dataset.key)]
      : [...left.values()].filter((section) => [...section.querySelectorAll(".member")].some((member) => ids.has(member.dataset.id)));
    for (const section of successors) left.delete(section.dataset.key);
    if (successors.length === 0) settle(old);
    else if (successors.length > 1 || !isSame(old, successors[0])) {
      if (playing?.section === old) stopPlaying();
      old.replaceWith(...successors);
      if (old === anchor) anchored = successors[0];
    } else old.querySelector("h2").replaceWith(successors[0].querySelector("h2"));
    last = successors.at(-1) ?? old;
  }
  for (const section of left.values()) {
    if (last === null) list.append(section);
    else last.after(section);
    last = section;
  }
  const pages = page.querySelector("nav.pages");
  document.querySelector("#groups nav.pages")?.remove();
  if (pages) document.getElementById("groups").append(pages);
  if (focused && !document.activeElement?.closest(".member")) document.querySelector(`.member[data-id="${focused}"]`)?.focus({ preventScroll: true });
  if (anchored && before !== undefined) window.scrollBy(0, anchored.getBoundingClientRect().top - before);
}

/** Whether two groups show the same files in the same roles with the same buttons. */
function isSame(one, other) {
  const facts = (section) => [...section.querySelectorAll(".member")].map((member) =>
    [member.dataset.id, member.dataset.other, member.querySelector(".verdict").textContent, member.querySelectorAll("input, button").length].join("|"));
  return facts(one).join("\n") === facts(other).join("\n");
}

/** A group that is none any more stays to be seen, without buttons, until the page is opened again. */
function settle(section) {
  if (section.classList.contains("settled")) return;
  if (playing?.section === section) stopPlaying();
  section.classList.add("settled");
  section.dataset.key = "";
  section.querySelector("h2 .facts").textContent = "settled: these are no group any more";
  for (const part of section.querySelectorAll("button, .line")) part.remove();
}

// Searching.

async function find() {
  if (running !== null) return;
  try {
    await follow(await api("/api/duplicates", { method: "POST", body: wish() }));
  } catch (error) {
    say(error.message);
  }
}

async function follow(job) {
  running = job;
  progress.hidden = false;
  document.getElementById("stop").hidden = false;
  let groups = null;
  try {
    const ended = await watchJob(job.id, (state) => {
      showProgress(progress, state);
      const count = state.detail.match(/\d+ groups? so far/)?.[0];
      if (count !== undefined && count !== groups) {
        groups = count;
        refresh().catch(() => {}); // the next state tries again
      }
    });
    running = null;
    if (ended.state === "failed") say(ended.error);
    if (ended.state === "stopped") say("Stopped; what was compared is kept.");
    await refresh();
    if (ended.state === "stopped") await join();
    return ended;
  } catch (error) {
    say(error.message);
  } finally {
    running = null;
    progress.hidden = true;
  }
  return null;
}

/** A page that is opened while something is at work shows how far that is. */
async function join() {
  for (const kind of ["removal", "duplicates"]) {
    const job = await runningJob(kind);
    if (job !== undefined && running === null) await (kind === "removal" ? followRemoval(job) : follow(job));
  }
}

// Verdicts.

async function decide(member, verdict) {
  const first = Number(member.dataset.id);
  const line = member.querySelector(".verdict");
  const words = { match: "copy (you confirmed it)", "not a match": "not a match (your verdict)", keep: "keep (your choice)" }[verdict];
  line.textContent = words;
  line.className = "verdict good";
  try {
    if (verdict === "keep") {
      const all = [...member.closest(".members").querySelectorAll(".member")];
      const before = Number(all.find((other) => other.classList.contains("best")).dataset.id);
      const others = all.map((other) => Number(other.dataset.id)).filter((id) => id && id !== first);
      await api("/api/duplicates/keep", { method: "POST", body: { video: first, instead_of: others } });
      done.push(() => api("/api/duplicates/keep", { method: "POST", body: { video: before, instead_of: [first] } }));
    } else {
      const body = { first, second: Number(member.dataset.other) };
      await api("/api/duplicates/verdict", { method: "POST", body: { ...body, verdict } });
      done.push(() => api("/api/duplicates/verdict", { method: "POST", body: { ...body, verdict: "forget" } }));
    }
    await refresh();
    say(`Remembered: ${words}.`, { action: { label: "Undo", run: undoLast } });
    await join();
  } catch (error) {
    say(error.message);
    await refresh();
  }
}

async function undoLast() {
  const back = done.pop();
  if (back === undefined) return say("There is nothing to undo on this page; what was removed is below.");
  try {
    await back();
    await refresh();
    say("Taken back.");
  } catch (error) {
    say(error.message);
  }
}

// Selecting and removing.

function selected() {
  try {
    return new Map(Object.entries(JSON.parse(sessionStorage.getItem(STORE) ?? "{}")));
  } catch {
    return new Map();
  }
}

function store(chosen) {
  sessionStorage.setItem(STORE, JSON.stringify(Object.fromEntries(chosen)));
  showSelection();
}

function showSelection() {
  if (bar === null) return;
  const chosen = selected();
  for (const box of document.querySelectorAll("[data-select]")) {
    const member = box.closest(".member");
    box.checked = chosen.has(member.dataset.id);
    member.classList.toggle("selected", box.checked);
  }
  const bytes = [...chosen.values()].reduce((sum, size) => sum + size, 0);
  bar.hidden = chosen.size === 0;
  document.getElementById("selected").textContent = `${chosen.size} ${chosen.size === 1 ? "copy" : "copies"} selected, ${fileSize(bytes)}`;
}

function select(member, on) {
  const chosen = selected();
  if (on) chosen.set(member.dataset.id, Number(member.dataset.size));
  else chosen.delete(member.dataset.id);
  store(chosen);
}

async function selectAll() {
  try {
    const view = new URLSearchParams(location.search);
    view.delete("page");
    store(new Map(Object.entries(await api(`/api/duplicates/spare?${view}`))));
    if (selected().size === 0) say("No copy can be removed: each is the best of its group, in doubt, or shows more.");
  } catch (error) {
    say(error.message);
  }
}

async function remove(folder) {
  const videos = [...selected().keys()].map(Number);
  if (videos.length === 0) return say("Nothing is selected; X selects a copy.");
  try {
    await followRemoval(await api("/api/duplicates/remove", { method: "POST", body: { videos, folder } }));
  } catch (error) {
    say(error.message, { seconds: 12 });
    await refresh();
  }
}

async function followRemoval(job) {
  for (const button of bar.querySelectorAll("button")) button.disabled = true;
  try {
    const ended = await follow(job);
    store(new Map());
    document.getElementById("where").hidden = true;
    const result = ended?.result;
    if (result) {
      const undoing = job.title === "Bring files back";
      const count = `${result.done} ${result.done === 1 ? "file" : "files"}`;
      for (const { path, cause } of result.skipped) say(`${path} stayed: ${cause}`, { seconds: 20 });
      if (undoing) say(`${count} brought back.`);
      else if (result.done) {
        const back = () => undo(result.name);
        done.push(back);
        say(`${count} moved, ${fileSize(result.bytes)} freed.`, { action: { label: "Undo", run: () => (done = done.filter((one) => one !== back), back()) } });
      }
    }
    await showHistory();
  } finally {
    for (const button of bar.querySelectorAll("button")) button.disabled = false;
  }
}

async function undo(name, paths = null) {
  try {
    await followRemoval(await api("/api/duplicates/undo", { method: "POST", body: { name, paths } }));
  } catch (error) {
    say(error.message);
  }
}

const FATES = { removed: "moved", restored: "brought back", unfinished: "not finished: undo it, or run `vidkin apply` with its plan", stayed: "stayed" };

async function showHistory() {
  const history = document.getElementById("history");
  if (!history?.open) return;
  const removals = await api("/api/duplicates/removals");
  const item = (removal, file) => {
    const where = file.fate === "removed" ? ` to ${file.place || "the trash"}` : "";
    const back = file.fate === "removed" && removal.files.length > 1 ? make("button", { type: "button", onclick: () => undo(removal.name, [file.path]), "aria-label": `Bring ${file.name} back` }, "Bring back") : "";
    return make("li", {}, make("strong", {}, file.name), ` ${FATES[file.fate]}${where} `, back);
  };
  history.querySelector(".removals").replaceChildren(
    ...(removals.length ? removals : []).map((removal) => {
      const bytes = removal.files.filter((file) => file.fate === "removed").reduce((sum, file) => sum + file.size, 0);
      const when = new Date(removal.created).toLocaleString();
      return make("li", {},
        make("div", { class: "removal-head" }, make("strong", {}, `${when}: ${removal.files.length} ${removal.files.length === 1 ? "file" : "files"}, ${fileSize(bytes)} away`),
          removal.can_undo ? make("button", { type: "button", onclick: () => undo(removal.name) }, "Undo") : make("span", { class: "good" }, "undone")),
        make("ul", {}, ...removal.files.map((file) => item(removal, file))));
    }),
    ...(removals.length ? [] : [make("li", { class: "facts" }, "Nothing was removed from this page.")]),
  );
}

// Playing a group in sync.

function stopPlaying() {
  if (playing === null) return;
  playing.tools.stop();
  playing.stage.replaceChildren();
  playing.stage.hidden = true;
  playing.button.lastChild.textContent = " Play in sync";
  playing = null;
}

async function play(section) {
  if (playing?.section === section) return stopPlaying();
  stopPlaying();
  const members = [...section.querySelectorAll(".member")].filter((member) => member.dataset.id);
  const best = members.find((member) => member.classList.contains("best"));
  if (best === undefined || members.length < 2) return say("Fewer than two of these files are there; there is nothing to play in sync.");
  const button = section.querySelector("[data-play]");
  const stage = section.querySelector(".stage");
  try {
    const sources = await Promise.all(members.map((member) => api(`/api/videos/${member.dataset.id}/source`)));
    const players = sources.map((source, index) => new Player(source, { muted: members[index] !== best }));
    const at = members.indexOf(best);
    const leader = players[at];
    const rest = members.map((member, index) => ({ player: players[index], parts: JSON.parse(member.dataset.parts).map((part) => ({ ...part, leader_box: [0, 0, 1, 1] })) })).filter((_, index) => index !== at);
    for (const { player } of rest) player.element.classList.add("follower");
    const sync = new Sync(leader, rest);
    const tools = new SyncTools(sync, stage);
    stage.replaceChildren(tools.element, leader.element, ...rest.map(({ player }) => player.element));
    stage.hidden = false;
    playing = { section, stage, button, tools, sync };
    button.lastChild.textContent = " Stop playing";
    const start = Math.max(...rest.map(({ parts }) => Math.min(...parts.map((part) => part.start), leader.source.duration)), 0);
    tools.playStretch({ start: Math.min(start, leader.source.duration), end: leader.source.duration });
    refine(members, best, sync);
    stage.scrollIntoView({ block: "nearest" });
  } catch (error) {
    say(error.message);
  }
}

/** Exact times by decoding both, for the players; until they are there, those of the comparison hold. */
async function refine(members, best, sync) {
  const others = members.filter((member) => member !== best);
  for (const [index, member] of others.entries()) {
    const follower = sync.followers[index];
    try {
      const parts = await exactParts({ video: Number(best.dataset.id), target: Number(member.dataset.id) }, follower.parts);
      if (playing?.sync !== sync) return;
      follower.parts = parts;
      if (sync.paused) sync.seek(sync.leader.time);
    } catch (error) {
      say(error.message);
    }
  }
  if (playing?.sync === sync) playing.stage.dataset.exact = "yes";
}

// Mouse and keys.

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  find();
});
form?.elements.threshold.addEventListener("input", (event) => {
  event.target.parentElement.firstChild.textContent = `Score of ${Number(event.target.value).toFixed(2)} or more `;
});
document.getElementById("stop")?.addEventListener("click", () => {
  if (running !== null) api(`/api/jobs/${running.id}/stop`, { method: "POST" }).catch((error) => say(error.message));
});

function viewAddress() {
  const words = new URLSearchParams(new FormData(filter));
  for (const [name, plain] of [["q", ""], ["show", "all"], ["sort", "path"]]) if (words.get(name) === plain) words.delete(name);
  return words.size ? `/duplicates?${words}` : "/duplicates";
}

let typing = 0;
filter?.addEventListener("submit", (event) => event.preventDefault());
filter?.addEventListener("input", (event) => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    history.replaceState(null, "", viewAddress());
    refresh({ stay: false }).catch((error) => say(error.message));
  }, event.target.type === "search" ? 250 : 0);
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-select]")) select(event.target.closest(".member"), event.target.checked);
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button === null) return;
  const member = button.closest(".member");
  if (button.classList.contains("again")) find();
  else if (member !== null && ("keep" in button.dataset || "verdict" in button.dataset)) decide(member, button.dataset.verdict ?? "keep");
  else if ("play" in button.dataset) play(button.closest(".group"));
  else if ("selectGroup" in button.dataset) {
    const boxes = [...button.closest(".group").querySelectorAll("[data-select]")];
    const on = boxes.some((box) => !box.checked);
    for (const box of boxes) select(box.closest(".member"), on);
  }
});
for (const [id, run] of Object.entries({
  trash: () => remove(null),
  move: () => {
    const where = document.getElementById("where");
    where.hidden = !where.hidden;
    where.elements.folder.focus();
  },
  clear: () => store(new Map()),
  "select-all": selectAll,
})) document.getElementById(id)?.addEventListener("click", run);
document.getElementById("where")?.addEventListener("submit", (event) => {
  event.preventDefault();
  remove(event.target.elements.folder.value);
});
document.getElementById("history")?.addEventListener("toggle", () => showHistory().catch((error) => say(error.message)));
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest?.("input:not([type=checkbox]), select, textarea")) return;
  if (playing !== null && event.target.closest?.(".group") === playing.section && playing.tools.key(event)) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (key === "u" && bar !== null) {
    event.preventDefault();
    undoLast();
    return;
  }
  const member = event.target.closest?.(".member");
  if (!member) return;
  const all = [...document.querySelectorAll(".member")];
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key];
  const wanted = { c: '[data-verdict="match"]', n: '[data-verdict="not a match"]', k: "[data-keep]", x: "[data-select]" }[key];
  if (step !== undefined) all[all.indexOf(member) + step]?.focus();
  else if (wanted !== undefined) member.querySelector(wanted)?.click();
  else if (key === "p") play(member.closest(".group"));
  else if (key === "Delete" && bar !== null) {
    if (selected().size === 0 && member.querySelector("[data-select]")) select(member, true);
    remove(null);
  } else return;
  event.preventDefault();
});

if (form !== null) {
  showSelection();
  await join();
  // What was being put together when the page was made may have ended before this looked.
  if (document.getElementById("groups").dataset.behind && document.querySelector(".group") === null) await refresh({ stay: false });
}
