// Search by example: choose or drop something, see what matches, play both sides in step.
import { NO_ANSWER, api, breakable, byId as find, card, clock, count, make, onClick, onKey, recall, say, waiting } from "./base.js";
import { matchAddress, readQuery, searchAddress } from "./addresses.js";
import { showPart } from "./player.js";
import { QueryPanel } from "./query.js";
import { MatchTools, describeSegment, stretch, stretchesOf } from "./segments.js";
import { openSide, stretchButton } from "./timeline.js";

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

// Earlier searches, for the page that is opened without one. The server keeps dropped and pasted files for a while.

const recent = () => recall(localStorage, RECENT, []);

function remember(query) {
  const time = query.time ?? query.start;
  const picture = `${panel.source.address}/thumbnail${time === undefined ? "" : `?time=${time.toFixed(1)}`}`;
  const row = { address: searchAddress(query), name: panel.source.name, part: partOf(query).replace("the ", ""), picture };
  localStorage.setItem(RECENT, JSON.stringify([row, ...recent().filter(({ address }) => address !== row.address)].slice(0, MAX_RECENT)));
}

function showRecent() {
  const rows = recent();
  find("recent").hidden = rows.length === 0;
  find("recent").querySelector("ul").replaceChildren(...rows.map((row) => {
    const item = card(row.address, row.picture, row.name, row.part);
    if (row.address.includes("upload=")) item.querySelector("img").addEventListener("error", () => forget(row, item));
    return item;
  }));
}

/** A file that the server no longer has cannot be searched with again. */
function forget(row, item) {
  item.remove();
  localStorage.setItem(RECENT, JSON.stringify(recent().filter(({ address }) => address !== row.address)));
  find("recent").hidden = recent().length === 0;
}

/** What is searched with, in words. */
const partOf = ({ box, time, start, end }) => (box ? `the rectangle at ${clock(time)}` : start === undefined ? "" : `${clock(start)} - ${clock(end)}`);

function describe() {
  find("what").textContent = `Search with ${partOf(panel.describe()) || (panel.source.still ? "the whole picture" : "the whole video")}.`;
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
    const body = { ...query, threshold, by: find("by")?.value ?? "picture" };
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
  const segments = match.segments.length ? match.segments : match.sound_segments;
  const sides = video.still ? [] : panel.source.still || query.box ? ["target"] : ["query", "target"];
  const label = (segment) => describeSegment(segment, sides);
  const play = (index) => segments[index] && showStep(match, segments, index, query);
  const [first] = segments;
  const at = first ? `&time=${((first.target_start + first.target_end) / 2).toFixed(1)}` : "";
  const picture = make("button", { type: "button", class: "picture", "aria-label": `Play ${video.name} beside the query`, onclick: () => play(0) },
    video.missing ? make("span", { class: "none" }, "the file is gone") : make("img", { src: `${video.thumbnail}${at}`, alt: "", loading: "lazy" }));
  // Around the picture itself: it is letterboxed like the screen of a player.
  const fit = make("span", { class: "fit" });
  fit.style.aspectRatio = `${video.width} / ${video.height}`;
  if (first && showPart(fit, first.target_box)) picture.append(fit);
  const meter = make("span", { class: "meter" });
  meter.style.setProperty("--share", match.score);
  const lines = (segments.length ? sides : []).map((side) => {
    const duration = Math.max(side === "query" ? panel.source.duration : video.duration, 0.1);
    const button = (each, index) => stretchButton({ ...each, label: `Play ${each.label}` }, duration, { title: each.label, tabindex: side === "query" ? "-1" : "0", onclick: () => play(index) });
    return make("div", { class: "lane" }, make("span", { class: "facts" }, side === "query" ? "query" : "match"),
      make("div", { class: "line" }, ...stretchesOf(segments.slice(0, 20), side, label).map(button)));
  });
  return make("li", { class: "match", "data-id": video.id },
    picture,
    make("div", { class: "about" },
      make("div", { class: "title" }, make("a", { href: `/videos/${video.id}${first ? `?time=${first.target_start.toFixed(2)}` : ""}` }, ...breakable(video.name)), meter, make("strong", {}, match.score.toFixed(2)),
        match.sound === null ? "" : make("span", { class: "tag", title: heard(match) }, `sound ${match.sound.toFixed(2)}`),
        match.mirrored ? make("span", { class: "tag" }, "mirrored") : "", video.missing ? make("span", { class: "error" }, "file is gone") : ""),
      make("div", { class: "lines" }, ...lines),
      make("p", { class: "facts" }, first ? label(first) : `${clock(video.duration)}, similar as a whole`)));
}

function endStep() {
  inStep?.stop();
  inStep = null;
  find("target-panel").hidden = true;
  find("target").replaceChildren();
  showLines();
}

async function showStep(match, segments, index, query) {
  endStep();
  if (match.video.missing) return say("The file is gone; it cannot be played.");
  const source = await api(`/api/videos/${match.video.id}/source`);
  const target = openSide(find("target"), source, { muted: true });
  find("compare").href = matchAddress(panel.describe(), match.video.id);
  find("compare").hidden = Boolean(query.box);
  find("target-panel").hidden = false;
  const label = (each) => `Segment ${stretch(each, "target")}`;
  const tools = (inStep = new MatchTools({ player: panel.player, timeline: query.box ? null : panel.timeline }, target, find("players"), segments, label));
  find("target").append(tools.element);
  const isStill = query.box || panel.source.still;
  tools.playSegment(index, { play: !isStill });
  // Both pictures on the screen, also where one is below the other.
  if (matchMedia("(max-width: 40rem)").matches) find("query").scrollIntoView();
  else find("target-panel").scrollIntoView({ block: "nearest" });
  if (match.segments.length && !isStill && !source.still) await tools.refine({ ...panel.source.key, target: match.video.id });
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
onClick({ "#search": () => search(), "#close": endStep, "#stop": () => running?.abort() });
onKey((key, event) => {
  const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[key];
  const row = event.target.closest(".match");
  if (row === null || step === undefined) return false;
  row[step]?.querySelector("button.picture").focus();
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
