// Search by example: choose or drop something, see what matches, play both sides in step.
import { NO_ANSWER, api, breakable, byId as find, card, clock, count, keyOf, make, placeStretch, say, waiting } from "./base.js";
import { matchAddress, readQuery, searchAddress } from "./addresses.js";
import { placeBox } from "./player.js";
import { QueryPanel } from "./query.js";
import { describeSegment, exactParts, partOf, stretch, stretchesOf } from "./segments.js";
import { Sync, SyncTools } from "./sync.js";
import { openSide } from "./timeline.js";

// Lines below the timeline.
const MOST_LINES = 8;
const MAX_RECENT = 8;
const RECENT = `searches ${location.host} ${document.querySelector(".index").textContent}`;
let panel = null;
let inStep = null;
let running = null;
let lines = []; // matches whose parts are drawn below the timeline of the query

function showQuery(source) {
  lines = [];
  find("recent").hidden = true;
  endStep();
  find("refused").hidden = true;
  panel = new QueryPanel(source);
  panel.addEventListener("change", () => describe());
  find("query").replaceChildren(panel.element);
  find("actions").hidden = false;
  describe();
}

// Searches with videos of the index, for the page that is opened without one; dropped files do not stay that long.

function recent() {
  try {
    return JSON.parse(localStorage.getItem(RECENT) ?? "[]");
  } catch {
    return [];
  }
}

function remember(query) {
  if (query.video === undefined) return;
  const row = { address: searchAddress(query), name: panel.source.name, time: query.time ?? query.start ?? null, part: query.box ? `rectangle at ${clock(query.time)}` : query.start === undefined ? "" : `${clock(query.start)} - ${clock(query.end)}` };
  row.picture = `${panel.source.address}/thumbnail${row.time === null ? "" : `?time=${row.time.toFixed(1)}`}`;
  localStorage.setItem(RECENT, JSON.stringify([row, ...recent().filter(({ address }) => address !== row.address)].slice(0, MAX_RECENT)));
}

function showRecent() {
  const rows = recent();
  find("recent").hidden = rows.length === 0;
  find("recent").querySelector("ul").replaceChildren(...rows.map(({ address, name, part, picture }) => card(address, picture, name, part)));
}

/** What a search is made with, in words. */
function describe() {
  const query = panel.describe();
  let part = panel.source.still ? "the whole picture" : "the whole video";
  if (query.box) part = `the rectangle at ${clock(query.time)}`;
  else if (query.start !== undefined) part = `${clock(query.start)} - ${clock(query.end)}`;
  find("what").textContent = `Search with ${part}.`;
}

async function search({ push = true } = {}) {
  if (panel === null) return;
  running?.abort();
  running = new AbortController();
  const query = panel.describe();
  if (push) history.pushState(null, "", searchAddress(query));
  clear();
  remember(query);
  find("searching").hidden = false;
  find("summary").textContent = "Searching...";
  // Where the matches come below the query, they would not be seen.
  if (matchMedia("(max-width: 60rem)").matches) find("searching").scrollIntoView();
  const mine = running;
  try {
    const threshold = Number(find("threshold").value) || 0;
    const body = { ...query, threshold, mirrored: find("mirrored").checked, by: find("by")?.value ?? "picture" };
    const result = await api("/api/search", { method: "POST", body, signal: running.signal, onWait: (position) => (find("summary").textContent = waiting(position)) });
    const found = result.matches.length;
    find("summary").textContent = found
      ? `${count(found, "match", "matches")}, best first (${result.seconds.toFixed(1)} s)`
      : `Nothing has a score of at least ${threshold} (${result.seconds.toFixed(1)} s).`;
    find("matches").replaceChildren(...result.matches.map((match) => showMatch(match, query)));
    lines = query.box ? [] : result.matches.slice(0, MOST_LINES);
    showLines();
    if (found === 0) offerRectangles(query);
  } catch (error) {
    if (error.name !== "AbortError") refuse(error.message);
    else if (mine === running) find("summary").textContent = "Stopped.";
  } finally {
    if (mine === running) {
      running = null;
      find("searching").hidden = true;
    }
  }
}

/** Below the timeline of the query: which parts of it each of the best matches shares. */
function showLines() {
  panel?.timeline?.showLines(lines.map(({ segments }) => stretchesOf(segments, "query")));
}

/** No answer of an earlier search stays beside another query. */
function clear() {
  lines = [];
  endStep();
  find("matches").replaceChildren();
  find("rectangles").hidden = find("refused").hidden = true;
  find("summary").textContent = "";
}

function refuse(message) {
  clear();
  find("refused").textContent = message;
  find("refused").hidden = false;
}

/** Where nothing is found: the largest rectangles of the picture, as of a screen in a photograph. */
async function offerRectangles(query) {
  if (query.box) return;
  const words = new URLSearchParams({ ...panel.source.key, time: panel.player.time.toFixed(2) });
  const boxes = await api(`/api/rectangles?${words}`);
  const choose = (box) => {
    panel.setBox(box);
    search();
  };
  const percent = (share) => `${Math.round(100 * share)} %`;
  const third = (low, high, names) => names[Math.min(Math.floor(1.5 * (low + high)), 2)];
  const where = ([left, top, right, bottom]) => `${third(top, bottom, ["top", "middle", "bottom"])} ${third(left, right, ["left", "center", "right"])}`;
  find("rectangles").replaceChildren(
    boxes.length ? "Search with a part of the picture: " : "No part of the picture stands out; draw a rectangle on it (R) to search with that part.",
    ...boxes.map((box) => make("button", { type: "button", onclick: () => choose(box) }, `${where(box)}, ${percent(box[2] - box[0])} x ${percent(box[3] - box[1])}`)),
  );
  find("rectangles").hidden = false;
}

function heard(match) {
  if (match.picture === null || match.sound < find("players").dataset.sure) return "What the sound alone says.";
  return match.picture < find("players").dataset.unrelated ? "The same sound over another picture." : "Picture and sound agree.";
}

function showMatch(match, query) {
  const { video } = match;
  // Where the picture says nothing, the sound says where.
  const byEar = match.segments.length === 0 && match.sound_segments.length > 0;
  const segments = byEar ? match.sound_segments : match.segments;
  const still = panel.source.still || query.box;
  const sides = video.still ? [] : still ? ["target"] : ["query", "target"];
  const label = (segment) => describeSegment(segment, sides);
  const play = (index) => segments[index] && showStep(match, segments[index], query);
  const first = segments[0];
  const picture = make("button", { type: "button", class: "picture", "aria-label": `Play ${video.name} beside the query`, onclick: () => play(0) },
    video.missing ? make("span", { class: "none" }, "the file is gone") : make("img", { src: `${video.thumbnail}${first ? `&time=${((first.target_start + first.target_end) / 2).toFixed(1)}` : ""}`, alt: "", loading: "lazy" }));
  if (first && (first.target_box[2] - first.target_box[0]) * (first.target_box[3] - first.target_box[1]) <= 0.8) {
    // Around the picture itself: it is letterboxed like the screen of a player.
    const fit = make("span", { class: "fit" });
    fit.style.aspectRatio = `${video.width} / ${video.height}`;
    const frame = make("span", { class: "box match" });
    placeBox(frame, first.target_box);
    fit.append(frame);
    picture.append(fit);
  }
  const meter = make("span", { class: "meter" });
  meter.style.setProperty("--share", match.score);
  const lines = make("div", { class: "lines" });
  for (const side of segments.length ? sides : []) {
    const duration = Math.max(side === "query" ? panel.source.duration : video.duration, 0.1);
    const line = make("div", { class: "line" });
    for (const [index, segment] of segments.slice(0, 20).entries()) {
      const bar = make("button", { type: "button", tabindex: side === "query" ? "-1" : "0", class: `segment${segment.mirrored ? " mirrored" : ""}`, "aria-label": `Play ${label(segment)}`, title: label(segment), onclick: () => play(index) });
      line.append(placeStretch(bar, segment[`${side}_start`], segment[`${side}_end`], duration));
    }
    lines.append(make("div", { class: "lane" }, make("span", { class: "facts" }, side === "query" ? "query" : "match"), line));
  }
  return make("li", { class: "match", "data-id": video.id },
    picture,
    make("div", { class: "about" },
      make("div", { class: "title" }, make("a", { href: `/videos/${video.id}${first ? `?time=${first.target_start.toFixed(2)}` : ""}` }, ...breakable(video.name)), meter, make("strong", {}, match.score.toFixed(2)),
        match.sound === null ? "" : make("span", { class: "tag", title: heard(match) }, `sound ${match.sound.toFixed(2)}`),
        match.mirrored ? make("span", { class: "tag" }, "mirrored") : "", video.missing ? make("span", { class: "error" }, "file is gone") : ""),
      lines,
      make("p", { class: "facts" }, first ? label(first) : `${clock(video.duration)}, similar as a whole`)));
}

function endStep() {
  inStep?.stop();
  inStep = null;
  find("target-panel").hidden = true;
  find("target").replaceChildren();
  showLines();
}

async function showStep(match, segment, query) {
  endStep();
  if (match.video.missing) return say("The file is gone; it cannot be played.");
  const source = await api(`/api/videos/${match.video.id}/source`);
  const { player, timeline } = openSide(find("target"), source, { muted: true });
  find("compare").href = matchAddress(panel.describe(), match.video.id);
  find("compare").hidden = Boolean(query.box);
  find("target-panel").hidden = false;
  player.element.classList.add("follower");
  const parts = match.segments.map(partOf);
  const sync = new Sync(panel.player, [{ player, parts }]);
  const tools = (inStep = new SyncTools(sync, find("players")));
  const show = (index, options) => tools.playStretch(sync.followers[0].parts[index], { only: sync.followers[0].parts[index], ...options });
  find("target").append(tools.element);
  const label = (each) => `Segment ${stretch(each, "target")}`;
  timeline?.showSegments(stretchesOf(match.segments, "target", label), show);
  panel.timeline?.showSegments(query.box ? [] : stretchesOf(match.segments, "query", label), show);
  const isStill = query.box || panel.source.still;
  if (segment) show(Math.max(match.segments.indexOf(segment), 0), { play: !isStill });
  // Both pictures on the screen, also where one is below the other.
  if (matchMedia("(max-width: 40rem)").matches) find("query").scrollIntoView();
  else find("target-panel").scrollIntoView({ block: "nearest" });
  if (!segment || isStill || source.still) return;
  const exact = await exactParts({ ...panel.source.key, target: match.video.id }, parts);
  if (inStep !== tools) return;
  const [follower] = sync.followers;
  follower.parts = exact;
  if (parts.includes(follower.only)) follower.only = exact[parts.indexOf(follower.only)];
}

function send(file) {
  const progress = find("sending");
  const request = new XMLHttpRequest();
  progress.hidden = false;
  progress.value = 0;
  request.upload.addEventListener("progress", (event) => {
    if (event.lengthComputable) progress.value = event.loaded / event.total;
  });
  request.addEventListener("loadend", () => {
    progress.hidden = true;
    const answer = request.response ?? { detail: NO_ANSWER };
    if (request.status !== 201) {
      panel = null;
      find("query").replaceChildren();
      find("actions").hidden = true;
      find("what").textContent = "";
      history.replaceState(null, "", "/search");
      refuse(answer.detail.startsWith(file.name) ? answer.detail : `${file.name}: ${answer.detail}`);
      return;
    }
    showQuery(answer);
    search();
  });
  request.responseType = "json";
  request.open("POST", `/api/uploads?name=${encodeURIComponent(file.name)}`);
  request.send(file);
}

find("file").addEventListener("change", (event) => event.target.files[0] && send(event.target.files[0]));
const drop = find("drop");
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    drop.classList.toggle("over", name === "dragover");
    if (name === "drop" && event.dataTransfer.files[0]) send(event.dataTransfer.files[0]);
  });
}
find("search").addEventListener("click", () => search());
find("close").addEventListener("click", endStep);
find("stop").addEventListener("click", () => running?.abort());
document.addEventListener("keydown", (event) => {
  const key = keyOf(event);
  if (key === null) return;
  if (key === "s") search();
  else if (key === "Escape" && running !== null) {
    running.abort();
    event.preventDefault(); // what is marked stays
  } else if (inStep?.key(event)) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[key];
  const row = event.target.closest(".match");
  if (row === null || step === undefined) return;
  const next = step > 0 ? row.nextElementSibling : row.previousElementSibling;
  next?.querySelector("button.picture").focus();
  event.preventDefault();
});

// A picture from the clipboard is searched for as one that is dropped.
document.addEventListener("paste", (event) => {
  const [file] = event.clipboardData.files;
  if (file) send(file);
});

function begin() {
  const query = readQuery(location.href);
  const given = find("query").dataset.source;
  if (!given) return showRecent();
  showQuery(JSON.parse(given));
  if (query.start !== undefined && panel.timeline) panel.timeline.mark(query.start, query.end ?? panel.source.duration);
  if (query.box) {
    panel.player.seek(query.time ?? 0);
    panel.setBox(query.box);
  }
  search({ push: false });
}
window.addEventListener("popstate", () => location.reload());
begin();
