// Duplicates: groups that stay where they are while verdicts, filters and removals change them.
import { api, arrowOf, byId, count, fileSize, make, morph, onClick, onInput, onKey, onSubmit, post, recall, refresher, say } from "./base.js";
import { formAddress } from "./addresses.js";
import { Jobs } from "./jobs.js";
import { Player } from "./player.js";
import { exactParts } from "./segments.js";
import { Sync, SyncTools } from "./sync.js";

const form = byId("wish");
const filter = byId("filter");
const bar = byId("selection");
const STORE = `selected ${location.host}`;
const SEARCH = "Find duplicates";
const jobs = new Jobs(byId("progress"), {
  onState: ({ detail }) => {
    const now = detail.match(/\d+ groups? so far/)?.[0];
    if (now === undefined || now === found) return;
    found = now;
    refresh().catch(() => {}); // the next state tries again
  },
  onEnd: async (ended, { kind, title }) => {
    if (kind === "removal") report(title, ended.result);
    await refresh();
  },
  onError: async (error) => {
    say(error.message);
    await refresh();
  },
});
let found = null; // groups so far, in words
let done = []; // what U takes back, the last one at the end
let isNext = false; // a search begins when what is followed has ended
let playing = null; // {section, stage, button, tools, sync}
let anew = false; // whether the next refresh shows the groups anew
const refresh = refresher(show);

// The page as the server has it now: what did not change is not touched, and nothing jumps.

function show(page) {
  const groups = page.getElementById("groups");
  if (groups === null) return;
  if (anew) {
    anew = false;
    stopPlaying();
    byId("groups").replaceWith(groups);
  } else {
    const at = document.activeElement?.closest(".group") ?? [...document.querySelectorAll(".group")].find((group) => group.getBoundingClientRect().bottom > 0);
    const before = at?.getBoundingClientRect().top;
    arrange(page.getElementById("list"));
    morph(byId("groups"), groups);
    if (playing !== null) nameButton("Stop playing");
    if (at?.isConnected) window.scrollBy(0, at.getBoundingClientRect().top - before);
  }
  if (bar !== null) morph(byId("removals"), page.getElementById("removals"));
  filter.parentElement.hidden = page.querySelector(".bars").hidden && filter.elements.q.value === "" && filter.elements.show.value === "all";
  showSelection();
}

/** The groups of a new page in the order of the one that is shown; what is no group any more stays to be seen. */
function arrange(list) {
  const left = [...list.tBodies];
  const idsOf = (group) => [...group.querySelectorAll(".member")].map((member) => member.dataset.id).filter(Boolean);
  const ordered = [...byId("list").tBodies].flatMap((old) => {
    const ids = new Set(idsOf(old));
    const heirs = left.filter((group) => group.dataset.key === old.dataset.key || idsOf(group).some((id) => ids.has(id)));
    for (const heir of heirs) left.splice(left.indexOf(heir), 1);
    if (playing?.section === old && heirs[0]?.dataset.key !== old.dataset.key) stopPlaying();
    old.dataset.key = heirs[0]?.dataset.key ?? "";
    return heirs.length ? heirs : [settle(old.cloneNode(true))];
  });
  list.append(...ordered, ...left);
}

function settle(section) {
  // Its number belongs to another group now, and what was said of its copy was before the verdict.
  section.classList.add("settled");
  section.ariaLabel = "Done";
  section.querySelector("h2").replaceChildren(make("span", { class: "facts" }, "Done: no duplicates left in this group"));
  for (const part of section.querySelectorAll("button:not([data-about]), input, .about p, .evidence")) part.remove();
  return section;
}

// Searching.

async function find() {
  if (isNext || jobs.job?.title === SEARCH) return say("A search is running; stop it to search with other settings.");
  isNext = true; // behind what is being put together or moved now
  await jobs.idle();
  isNext = false;
  const { threshold, parts } = form.elements;
  const wish = { ...Object.fromEntries(new FormData(form)), threshold: Number(threshold.value), parts: parts.checked };
  await catchUp(await jobs.begin(() => post("/api/duplicates", wish)));
}

/** What was compared before a stop, or judged meanwhile, is being put together. */
async function catchUp(ended) {
  if (ended?.state === "stopped" || byId("groups").dataset.behind) await jobs.join("duplicates");
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
      await post("/api/duplicates/keep", { video: first, instead_of: others });
      offerUndo(`Saved: ${words}.`, () => unjudge("keep", { video: before, instead_of: [first] }));
    } else {
      const body = { first, second: Number(member.dataset.other) };
      await post("/api/duplicates/verdict", { ...body, verdict });
      offerUndo(`Saved: ${words}.`, () => unjudge("verdict", { ...body, verdict: "forget" }));
    }
    await refresh();
    await join();
  } catch (error) {
    say(error.message);
    await refresh();
  }
}

async function unjudge(kind, body) {
  await post(`/api/duplicates/${kind}`, body);
  await refresh();
  say("Verdict undone.");
}

/** Say what was done, with a button that takes it back once, as U does with what was done last. */
function offerUndo(text, back) {
  const run = () => {
    line.remove();
    done = done.filter((one) => one !== run);
    return back();
  };
  const line = say(text, { action: { label: "Undo", run } });
  done.push(run);
}

function undoLast() {
  return (done.at(-1) ?? (() => say("There is nothing to undo on this page; what was removed is below.")))();
}

// Selecting and removing.

const selected = () => new Map(Object.entries(recall(sessionStorage, STORE, {})));

function store(chosen) {
  sessionStorage.setItem(STORE, JSON.stringify(Object.fromEntries(chosen)));
  showSelection();
}

function showSelection() {
  if (bar === null) return;
  const chosen = selected();
  for (const box of document.querySelectorAll("[data-select]")) box.checked = chosen.has(box.closest(".member").dataset.id);
  const bytes = [...chosen.values()].reduce((sum, size) => sum + size, 0);
  bar.hidden = chosen.size === 0;
  byId("selected").textContent = `${count(chosen.size, "copy", "copies")} selected, ${fileSize(bytes)}`;
}

function select(boxes, on) {
  const chosen = selected();
  for (const { dataset } of boxes.map((box) => box.closest(".member"))) {
    if (on) chosen.set(dataset.id, Number(dataset.size));
    else chosen.delete(dataset.id);
  }
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

/** Prove, move or bring files back, unless other work is under way. */
async function act(address, body) {
  if (jobs.isBusy) return say("Wait until the work that is shown has ended, or stop it.");
  return jobs.begin(() => post(address, body));
}

/** A plan has only what is proven: the proof comes first. */
async function savePlan(address) {
  const ended = await act("/api/duplicates/prove", {});
  if (ended?.state === "done") make("a", { href: address, download: "plan.json" }).click();
}

/** What a job did with files, in words. */
function report(title, result) {
  byId("where").hidden = true;
  if (typeof result?.proven === "number") {
    return say(`${count(result.proven, "file")} can be removed without loss${result.skipped.length ? `; ${count(result.skipped.length, "file")} cannot, see below` : ""}.`);
  }
  store(new Map());
  if (!result) return;
  const moved = count(result.done, "file");
  for (const { path, cause } of result.skipped) say(`${path} stayed: ${cause}`, { seconds: 20 });
  if (title === "Restore files") say(`${moved} restored.`);
  else if (result.done) {
    offerUndo(`${moved} moved to ${result.folder ?? "the trash"} (${fileSize(result.bytes)}).`, () => undo(result.name));
  }
}

const undo = (name, paths = null) => act("/api/duplicates/undo", { name, paths });

// Playing a group in sync.

function stopPlaying() {
  if (playing === null) return;
  playing.tools.stop();
  playing.stage.replaceChildren();
  playing.stage.hidden = true;
  nameButton("Play in sync");
  playing = null;
}

function nameButton(words) {
  playing.section.querySelector("[data-play]").lastChild.textContent = ` ${words}`;
}

async function play(section) {
  if (playing?.section === section) return stopPlaying();
  stopPlaying();
  const members = [...section.querySelectorAll(".member")].filter((member) => member.dataset.id);
  const best = members.find((member) => member.classList.contains("best"));
  if (best === undefined || members.length < 2) return say("Fewer than two of these files are there; there is nothing to play in sync.");
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
  playing = { section, stage, tools, sync };
  nameButton("Stop playing");
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

function showView() {
  history.replaceState(null, "", formAddress("/duplicates", filter, { show: "all", sort: "path" }));
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

onSubmit(form, find);
form?.elements.threshold.addEventListener("input", ({ target }) => (target.parentElement.firstChild.textContent = `Score of ${Number(target.value).toFixed(2)} or more `));
onInput(filter, ({ descending }, field) => {
  if (field?.name === "sort") descending.value = "";
  showView();
});
const rule = byId("rule");
rule?.addEventListener("change", () => {
  for (const name of ["folder", "below"]) {
    const field = rule.elements[name];
    field.disabled = field.parentElement.hidden = rule.elements.rule.value !== name;
  }
});
onSubmit(rule, selectByRule);
onSubmit(byId("where"), ({ folder }) => remove(folder.value));
onClick({
  ".again": find,
  "[data-sort]": ({ dataset }) => sortBy(dataset.sort),
  "[data-about]": (button) => showAbout(rowOf(button)),
  "[data-keep]": (button) => decide(rowOf(button), "keep"),
  "[data-verdict]": (button) => decide(rowOf(button), button.dataset.verdict),
  "[data-play]": (button) => play(button.closest(".group")),
  "[data-select]": (box) => select([box], box.checked),
  "[data-select-group]": (button) => {
    const boxes = [...button.closest(".group").querySelectorAll("[data-select]")];
    select(boxes, boxes.some((box) => !box.checked));
  },
  "[data-undo]": ({ dataset }) => undo(dataset.undo, dataset.path ? [JSON.parse(dataset.path)] : null),
  "#trash": () => remove(null),
  "#move": () => {
    byId("where").hidden = !byId("where").hidden;
    byId("where").elements.folder.focus();
  },
  "#clear": () => store(new Map()),
  '#export [href$="/plan.json"]': (link, event) => {
    event.preventDefault();
    savePlan(link.href);
  },
});
onKey((key, event) => {
  if (key === "u" && bar !== null) return undoLast();
  const member = rowOf(event.target);
  if (!member) return false;
  const all = [...document.querySelectorAll(".member")];
  const [right, down] = arrowOf(key);
  // Also while the row of its facts is closed, or has the keyboard.
  const wanted = { c: '[data-verdict="match"]', n: '[data-verdict="not a match"]', k: "[data-keep]", x: "[data-select]" }[key];
  if (right || down) all[all.indexOf(member) + right + down]?.focus();
  else if (wanted !== undefined) (member.querySelector(wanted) ?? member.nextElementSibling?.querySelector(`:scope > td ${wanted}`))?.click();
  else if (key === "Enter" && event.target === member) showAbout(member);
  else if (key === "p") play(member.closest(".group"));
  else if (key === "Delete" && bar !== null) {
    const box = member.querySelector("[data-select]");
    if (selected().size === 0 && box) select([box], true);
    remove(null);
  } else return false;
});

if (form !== null) {
  showSelection();
  await join();
  // What was being put together when the page was made may have ended before this looked.
  if (byId("groups").dataset.behind && document.querySelector(".group") === null) await showView();
}
