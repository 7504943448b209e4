// Duplicates: groups that stay where they are while verdicts, filters and removals change them.
import { api, byId, count, fileSize, keyOf, make, putInPlace, refresher, say } from "./base.js";
import { Follower, followJob, showProgress } from "./jobs.js";
import { Player } from "./player.js";
import { exactParts } from "./segments.js";
import { Sync, SyncTools } from "./sync.js";

const form = byId("wish");
const filter = byId("filter");
const progress = byId("progress");
const bar = byId("selection");
const STORE = `selected ${location.host}`;
const jobs = new Follower((job) => (job.kind === "removal" ? followRemoval(job) : follow(job)));
let running = null; // the job that is followed
let done = []; // what U takes back, the last one at the end
let isNext = false; // a search begins when what is followed has ended
let playing = null; // {section, tools, players}
let anew = false; // whether the next refresh shows the groups anew
const refresh = refresher(show);

function wish() {
  const values = form.elements;
  return { threshold: Number(values.threshold.value), parts: values.parts.checked, prefer: values.prefer.value, by: values.by?.value ?? "picture" };
}

// The page as the server has it now, group by group: what did not change is not touched, and nothing jumps.

function show(page) {
  const groups = page.getElementById("groups");
  if (groups === null) return;
  if (anew) {
    anew = false;
    stopPlaying();
    byId("groups").replaceWith(groups);
  } else {
    byId("groups").dataset.behind = groups.dataset.behind;
    update(page);
  }
  filter.parentElement.hidden = page.querySelector(".bars").hidden && filter.elements.q.value === "" && filter.elements.show.value === "all";
  showSelection();
}

function update(page) {
  const focus = keepFocus();
  const anchor = document.activeElement?.closest(".group") ?? [...document.querySelectorAll(".group")].find((group) => group.getBoundingClientRect().bottom > 0);
  const before = anchor?.getBoundingClientRect().top;
  putInPlace(byId("summary"), page.getElementById("summary"));
  const list = byId("list");
  const left = new Map([...page.querySelectorAll(".group")].map((section) => [section.dataset.key, section]));
  let last = null;
  let anchored = anchor;
  for (const old of [...list.tBodies]) {
    const ids = new Set([...old.querySelectorAll(".member")].map((member) => member.dataset.id).filter(Boolean));
    const successors = left.has(old.dataset.key)
      ? [left.get(old.dataset.key)]
      : [...left.values()].filter((section) => [...section.querySelectorAll(".member")].some((member) => ids.has(member.dataset.id)));
    for (const section of successors) left.delete(section.dataset.key);
    last = old;
    if (successors.length === 0) settle(old);
    else if (successors.length === 1 && isSame(old, successors[0])) putInPlace(old.querySelector("h2"), successors[0].querySelector("h2"));
    else {
      if (playing?.section === old) stopPlaying();
      old.replaceWith(...successors);
      if (old === anchor) anchored = successors[0];
      last = successors.at(-1);
    }
  }
  for (const section of left.values()) {
    if (last === null) list.append(section);
    else last.after(section);
    last = section;
  }
  const [pages, wanted] = [document.querySelector("#groups nav.pages"), page.querySelector("nav.pages")];
  if (pages && wanted) putInPlace(pages, wanted);
  else if (wanted) byId("groups").append(wanted);
  else pages?.remove();
  focus();
  if (anchored && before !== undefined) window.scrollBy(0, anchored.getBoundingClientRect().top - before);
}

const PLACES = ["[data-keep]", '[data-verdict="match"]', '[data-verdict="not a match"]', "[data-select]", "[data-about]", ".name a", "[data-play]", "[data-select-group]"];

/** Remembers where the keyboard is; what it returns brings it back if that was replaced. */
function keepFocus() {
  const element = document.activeElement;
  if (!element?.closest(".group")) return () => {};
  const what = PLACES.find((place) => element.matches(place));
  const id = element.closest(".member")?.dataset.id;
  const ids = [...element.closest(".group").querySelectorAll(".member")].map((member) => member.dataset.id).filter(Boolean);
  return () => {
    if (element.isConnected) return;
    const byId = (one) => document.querySelector(`.member[data-id="${one}"]`);
    const member = id ? byId(id) : null;
    const around = id ? member : ids.map(byId).find(Boolean)?.closest(".group");
    const again = (what && around?.querySelector(what)) || member || around?.querySelector(".member");
    again?.focus({ preventScroll: true });
  };
}

/** Whether two groups show the same files in the same roles with the same buttons. */
function isSame(one, other) {
  const buttons = (section) => [...section.querySelectorAll(".group-head button")].map((button) => Object.keys(button.dataset).join(" "));
  const facts = (section) => [...section.querySelectorAll(".member")].map((member) =>
    [member.dataset.id, member.dataset.other, member.dataset.parts, member.querySelector(".verdict").textContent, member.querySelector(".reasons")?.textContent, member.querySelectorAll("input, button").length].join("|"));
  return [...buttons(one), ...facts(one)].join("\n") === [...buttons(other), ...facts(other)].join("\n");
}

/** A group that is none any more stays to be seen, without buttons, until the page is opened again. */
function settle(section) {
  if (section.classList.contains("settled")) return;
  if (playing?.section === section) stopPlaying();
  section.classList.add("settled");
  section.dataset.key = "";
  section.querySelector("h2 .facts").textContent = "Done: no duplicates left in this group";
  for (const row of section.querySelectorAll(".about")) row.hidden = true;
  for (const part of section.querySelectorAll("button:not([data-about]), input")) part.remove();
}

// Searching.

async function find() {
  if (running?.title === "Find duplicates") return say("A search is running; stop it to search with other settings.");
  if (isNext) return;
  isNext = true; // behind what is being put together or moved now
  await jobs.idle();
  isNext = false;
  const ended = await jobs.begin(() => ask("Find duplicates", "/api/duplicates", wish()));
  await catchUp(ended);
}

/** The job that the server began; the page shows at once that something is on its way. */
async function ask(title, address, body) {
  running = { title };
  showProgress(progress, { done: 0, total: 0, detail: "starting" });
  progress.hidden = false;
  progress.querySelector("button").hidden = true;
  try {
    return await api(address, { method: "POST", body });
  } catch (error) {
    running = null;
    progress.hidden = true;
    throw error;
  }
}

/** What was compared before a stop, or judged meanwhile, is being put together. */
async function catchUp(ended) {
  if (ended?.state === "stopped" || byId("groups").dataset.behind) await jobs.join("duplicates");
}

/** The last state of a job that is followed to its end, and until the page shows what it did; null if that failed. */
async function follow(job) {
  running = job;
  let groups = null;
  try {
    return await followJob(job, progress, {
      onState: ({ detail }) => {
        const found = detail.match(/\d+ groups? so far/)?.[0];
        if (found === undefined || found === groups) return;
        groups = found;
        refresh().catch(() => {}); // the next state tries again
      },
      onEnd: () => refresh(),
    });
  } catch (error) {
    say(error.message);
  } finally {
    running = null;
  }
  return null;
}

/** A page that is opened while something is at work shows how far that is. */
async function join() {
  for (const kind of ["removal", "duplicates"]) {
    const ended = await jobs.join(kind);
    if (ended !== null) await catchUp(ended);
  }
}

// Verdicts.

/** The row of a file in which, or below which, something is. */
const rowOf = (element) => element.closest(".member") ?? element.closest(".about")?.previousElementSibling ?? null;

async function decide(member, verdict) {
  const first = Number(member.dataset.id);
  const line = member.querySelector(".verdict");
  const words = { match: "copy (you confirmed it)", "not a match": "not a match (your verdict)", keep: "keep (your choice)" }[verdict];
  line.textContent = words;
  line.className = "verdict good";
  try {
    if (verdict === "keep") {
      const all = [...member.closest(".group").querySelectorAll(".member")];
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
    say(`Saved: ${words}.`, { action: { label: "Undo", run: undoLast } });
    await join();
  } catch (error) {
    say(error.message);
    await refresh();
  }
}

async function undoLast() {
  const back = done.pop();
  if (back === undefined) return say("There is nothing to undo on this page; what was removed is below.");
  await back();
  await refresh();
  say("Verdict undone.");
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
  byId("selected").textContent = `${count(chosen.size, "copy", "copies")} selected, ${fileSize(bytes)}`;
}

function select(member, on) {
  const chosen = selected();
  if (on) chosen.set(member.dataset.id, Number(member.dataset.size));
  else chosen.delete(member.dataset.id);
  store(chosen);
}

/** Select by a rule, on all pages, what may be removable. */
async function selectByRule({ rule, folder, below }) {
  const wanted = new URLSearchParams(location.search);
  for (const name of ["page", "sort", "descending"]) wanted.delete(name);
  if (rule.value === "folder") wanted.set("folder", folder.value);
  if (rule.value === "below") wanted.set("below", Math.round(Number(below.value) * 1e6));
  store(new Map(Object.entries(await api(`/api/duplicates/spare?${wanted}`))));
  if (selected().size === 0) say("No copy selected: none may be removable. The others are the best of their group, doubtful, or have content of their own.");
}

async function remove(folder) {
  const videos = [...selected().keys()].map(Number);
  if (videos.length === 0) return say("Nothing is selected; X selects a copy.");
  await act("/api/duplicates/remove", { videos, folder });
}

/** Prove, move or bring files back, unless other work on them is under way. */
async function act(address, body, title = "Move files") {
  if (running !== null) return say(`Wait until this has ended: ${running.title}.`);
  await jobs.idle();
  return jobs.begin(() => ask(title, address, body).catch(async (error) => {
    await refresh();
    throw error;
  }));
}

/** A plan has only what is proven: the proof comes first. */
async function savePlan(address) {
  const ended = await act("/api/duplicates/prove", {}, "Prove what can be removed");
  if (ended?.state === "done") make("a", { href: address, download: "plan.json" }).click();
}

async function followRemoval(job) {
  for (const button of bar.querySelectorAll("button")) button.disabled = true;
  try {
    const ended = await follow(job);
    const result = ended?.result;
    const proving = typeof result?.proven === "number";
    if (!proving) store(new Map());
    byId("where").hidden = true;
    if (proving) {
      say(`${count(result.proven, "file")} can be removed without loss${result.skipped.length ? `; ${count(result.skipped.length, "file")} cannot, see below` : ""}.`);
    } else if (result) {
      const moved = count(result.done, "file");
      for (const { path, cause } of result.skipped) say(`${path} stayed: ${cause}`, { seconds: 20 });
      if (job.title === "Restore files") say(`${moved} restored.`);
      else if (result.done) {
        const back = () => undo(result.name);
        done.push(back);
        say(`${moved} moved to ${result.folder ?? "the trash"} (${fileSize(result.bytes)}).`, { action: { label: "Undo", run: () => (done = done.filter((one) => one !== back), back()) } });
      }
    }
    await showHistory();
    return ended;
  } finally {
    for (const button of bar.querySelectorAll("button")) button.disabled = false;
  }
}

async function undo(name, paths = null) {
  await act("/api/duplicates/undo", { name, paths });
}

const FATES = { removed: "moved", restored: "restored", unfinished: "not finished: undo it, or run `vidkin apply` with its plan", stayed: "stayed" };

async function showHistory() {
  const history = byId("history");
  if (!history?.open) return;
  const removals = await api("/api/duplicates/removals");
  const item = (removal, file) => {
    const where = file.fate === "removed" ? ` to ${file.place || "the trash"}` : "";
    const back = file.fate === "removed" && removal.files.length > 1 ? make("button", { type: "button", onclick: () => undo(removal.name, [file.path]), "aria-label": `Restore ${file.name}` }, "Restore") : "";
    return make("li", {}, make("strong", {}, file.name), ` ${FATES[file.fate]}${where} `, back);
  };
  history.querySelector(".removals").replaceChildren(
    ...removals.map((removal) => {
      const bytes = removal.files.filter((file) => file.fate === "removed").reduce((sum, file) => sum + file.size, 0);
      const when = new Date(removal.created).toLocaleString();
      return make("li", {},
        make("div", { class: "removal-head" }, make("strong", {}, `${when}: ${count(removal.files.length, "file")}${bytes ? `, moved (${fileSize(bytes)})` : ""}`),
          removal.can_undo ? make("button", { type: "button", onclick: () => undo(removal.name) }, "Undo") : make("span", { class: "good" }, "undone")),
        make("ul", {}, ...removal.files.map((file) => item(removal, file))));
    }),
    ...(removals.length ? [] : [make("li", { class: "facts" }, "Nothing was removed yet.")]),
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
}

/** Exact times by decoding both, for the players; until they are there, those of the comparison hold. */
async function refine(members, best, sync) {
  const others = members.filter((member) => member !== best);
  for (const [index, member] of others.entries()) {
    const follower = sync.followers[index];
    const parts = await exactParts({ video: Number(best.dataset.id), target: Number(member.dataset.id) }, follower.parts);
    if (playing?.sync !== sync) return;
    follower.parts = parts;
    if (sync.paused) sync.seek(sync.leader.time);
  }
  playing.stage.dataset.exact = "yes";
}

// Mouse and keys.

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  find();
});
form?.elements.threshold.addEventListener("input", (event) => {
  event.target.parentElement.firstChild.textContent = `Score of ${Number(event.target.value).toFixed(2)} or more `;
});
function viewAddress() {
  const words = new URLSearchParams(new FormData(filter));
  for (const [name, plain] of [["q", ""], ["show", "all"], ["sort", "path"], ["descending", ""]]) if (words.get(name) === plain) words.delete(name);
  return words.size ? `/duplicates?${words}` : "/duplicates";
}

let typing = 0;
filter?.addEventListener("submit", (event) => event.preventDefault());
filter?.addEventListener("input", (event) => {
  clearTimeout(typing);
  if (event.target.name === "sort") filter.elements.descending.value = "";
  typing = setTimeout(() => showView(), event.target.type === "search" ? 250 : 0);
});

function showView() {
  history.replaceState(null, "", viewAddress());
  anew = true;
  return refresh();
}

/** A column sorts from its largest value at first, names and words from their first; once more turns the order. */
async function sortBy(name) {
  const { sort, descending } = filter.elements;
  const isWords = ["path", "folder", "reason"].includes(name);
  descending.value = (sort.value === name ? descending.value === "" : !isWords) ? "yes" : "";
  sort.value = name;
  await showView();
  document.querySelector(`[data-sort="${name}"]`)?.focus();
}

function showAbout(member) {
  const about = member.nextElementSibling;
  if (!about?.matches(".about")) return;
  about.hidden = !about.hidden;
  member.querySelector("[data-about]").setAttribute("aria-expanded", String(!about.hidden));
}

const rule = byId("rule");
rule?.addEventListener("change", () => {
  for (const name of ["folder", "below"]) {
    const field = rule.elements[name];
    field.disabled = field.parentElement.hidden = rule.elements.rule.value !== name;
  }
});
rule?.addEventListener("submit", (event) => {
  event.preventDefault();
  selectByRule(rule.elements);
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-select]")) select(event.target.closest(".member"), event.target.checked);
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button === null) return;
  const member = rowOf(button);
  if (button.classList.contains("again")) find();
  else if ("sort" in button.dataset) sortBy(button.dataset.sort);
  else if ("about" in button.dataset) showAbout(member);
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
    const where = byId("where");
    where.hidden = !where.hidden;
    where.elements.folder.focus();
  },
  clear: () => store(new Map()),
})) byId(id)?.addEventListener("click", run);
byId("where")?.addEventListener("submit", (event) => {
  event.preventDefault();
  remove(event.target.elements.folder.value);
});
document.querySelector('#export [href$="/plan.json"]')?.addEventListener("click", (event) => {
  event.preventDefault();
  savePlan(event.currentTarget.href);
});
byId("history")?.addEventListener("toggle", showHistory);
document.addEventListener("keydown", (event) => {
  const key = keyOf(event);
  if (key === null || (playing !== null && event.target.closest?.(".group") === playing.section && playing.tools.key(event))) return;
  if (key === "u" && bar !== null) {
    event.preventDefault();
    undoLast();
    return;
  }
  const member = event.target.closest && rowOf(event.target);
  if (!member) return;
  const all = [...document.querySelectorAll(".member")];
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key];
  const wanted = { c: '[data-verdict="match"]', n: '[data-verdict="not a match"]', k: "[data-keep]", x: "[data-select]" }[key];
  if (step !== undefined) all[all.indexOf(member) + step]?.focus();
  else if (wanted !== undefined) (member.querySelector(wanted) ?? member.nextElementSibling?.querySelector(`:scope > td ${wanted}`))?.click();
  else if (key === "Enter" && event.target === member) showAbout(member);
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
  if (byId("groups").dataset.behind && document.querySelector(".group") === null) await showView();
}
