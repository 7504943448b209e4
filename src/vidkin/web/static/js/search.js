// Search by example: choose or drop something, see what matches, play both sides in step.
import { api, breakable, clock, make, say, waiting } from "./base.js";
import { matchAddress, readQuery, searchAddress } from "./addresses.js";
import { Player, playerKeys } from "./player.js";
import { QueryPanel } from "./query.js";
import { Sync, SyncTools, exactParts, partOf } from "./sync.js";
import { Timeline } from "./timeline.js";

// Lines below the timeline.
const MOST_LINES = 8;
const MAX_RECENT = 8;
const RECENT = `searches ${location.host} ${document.querySelector(".index").textContent}`;
const find = (id) => document.getElementById(id);
let panel = null;
let inStep = null;
let running = null;
let found = []; // matches whose parts are drawn below the timeline of the query

function showQuery(source) {
  found = [];
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
  find("recent").querySelector("ul").replaceChildren(...rows.map(({ address, name, part, picture }) =>
    make("li", { class: "card" }, make("a", { href: address },
      make("span", { class: "picture" }, make("img", { src: picture, alt: "", loading: "lazy", width: 240, height: 135 })),
      make("span", { class: "name" }, ...breakable(name))), part ? make("span", { class: "facts" }, part) : "")));
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
  const mine = running;
  try {
    const threshold = Number(find("threshold").value) || 0;
    const body = { ...query, threshold, mirrored: find("mirrored").checked, by: find("by")?.value ?? "picture" };
    const result = await api("/api/search", { method: "POST", body, signal: running.signal, onWait: (position) => (find("summary").textContent = waiting(position)) });
    const count = result.matches.length;
    find("summary").textContent = count
      ? `${count} ${count === 1 ? "match" : "matches"}, best first (${result.seconds.toFixed(1)} s)`
      : `Nothing has a score of at least ${threshold} (${result.seconds.toFixed(1)} s).`;
    find("matches").replaceChildren(...result.matches.map((match) => showMatch(match, query)));
    found = query.box ? [] : result.matches.slice(0, MOST_LINES);
    showLines();
    if (count === 0) offerRectangles(query).catch((error) => say(error.message));
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
  panel?.timeline?.showLines(found.map(({ segments }) => segments.map((each) => ({ start: each.query_start, end: each.query_end, mirrored: each.mirrored }))));
}

/** No answer of an earlier search stays beside another query. */
function clear() {
  found = [];
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
  find("rectangles").replaceChildren(
    boxes.length ? "Search with a part of the picture: " : "No part of the picture stands out; draw a rectangle on it (R) to search with that part.",
    ...boxes.map((box) => make("button", { type: "button", onclick: () => choose(box) }, `${percent(box[2] - box[0])} x ${percent(box[3] - box[1])} at ${percent(box[0])}, ${percent(box[1])}`)),
  );
  find("rectangles").hidden = false;
}

/** What happened to the copy, in words. */
function kindsOf(segment) {
  const { speed } = segment;
  return [
    Math.abs(speed - 1) > 0.02 && `plays at ${(1 / speed).toFixed(2)}x`,
    segment.mirrored && "mirrored",
    segment.turned && `turned ${segment.turned} degrees`,
  ].filter(Boolean);
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
  const stretch = (segment, side) => `${clock(segment[`${side}_start`])} - ${clock(segment[`${side}_end`])}`;
  const label = (segment) => {
    const target = video.still ? "" : stretch(segment, "target");
    const where = still || video.still ? target : `${stretch(segment, "query")} at ${target}`;
    return [where, `score ${segment.score.toFixed(2)}`, segment.part, ...kindsOf(segment)].filter(Boolean).join(", ");
  };
  const play = (index) => segments[index] && showStep(match, segments[index], query);
  const first = segments[0];
  const picture = make("button", { type: "button", class: "picture", "aria-label": `Play ${video.name} beside the query`, onclick: () => play(0) },
    video.missing ? make("span", { class: "none" }, "the file is gone") : make("img", { src: `${video.thumbnail}${first ? `&time=${((first.target_start + first.target_end) / 2).toFixed(1)}` : ""}`, alt: "", loading: "lazy" }));
  if (first && (first.target_box[2] - first.target_box[0]) * (first.target_box[3] - first.target_box[1]) <= 0.8) {
    // Around the picture itself: it is letterboxed like the screen of a player.
    const fit = make("span", { class: "fit" });
    fit.style.aspectRatio = `${video.width} / ${video.height}`;
    const [left, top, right, bottom] = first.target_box;
    const frame = make("span", { class: "box match" });
    Object.assign(frame.style, { left: `${left * 100}%`, top: `${top * 100}%`, width: `${(right - left) * 100}%`, height: `${(bottom - top) * 100}%` });
    fit.append(frame);
    picture.append(fit);
  }
  const meter = make("span", { class: "meter" });
  meter.style.setProperty("--share", match.score);
  const lines = make("div", { class: "lines" });
  for (const side of segments.length && !video.still ? ["query", "target"] : []) {
    const duration = side === "query" ? panel.source.duration : video.duration;
    if (side === "query" && still) continue;
    const line = make("div", { class: "line" });
    for (const [index, segment] of segments.slice(0, 20).entries()) {
      const bar = make("button", { type: "button", tabindex: side === "query" ? "-1" : "0", class: `segment${segment.mirrored ? " mirrored" : ""}`, "aria-label": `Play ${label(segment)}`, title: label(segment), onclick: () => play(index) });
      const [start, end] = [segment[`${side}_start`], segment[`${side}_end`]];
      bar.style.left = `${(100 * start) / Math.max(duration, 0.1)}%`;
      bar.style.width = `${(100 * (end - start)) / Math.max(duration, 0.1)}%`;
      line.append(bar);
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
  if (match.video.missing) {
    say("The file is gone; it cannot be played.");
    return;
  }
  try {
    const source = await api(`/api/videos/${match.video.id}/source`);
    const player = new Player(source, { muted: true });
    const timeline = source.still ? null : new Timeline(player);
    find("target").append(player.element);
    if (timeline) player.element.append(timeline.element);
    playerKeys(player.element, player);
    find("compare").href = matchAddress(panel.describe(), match.video.id);
    find("compare").hidden = Boolean(query.box);
    find("target-panel").hidden = false;
    player.element.classList.add("follower");
    const parts = match.segments.map(partOf);
    const sync = new Sync(panel.player, [{ player, parts }]);
    const tools = (inStep = new SyncTools(sync, find("players")));
    const show = (index, options) => tools.playStretch(sync.followers[0].parts[index], { only: sync.followers[0].parts[index], ...options });
    find("target").append(tools.element);
    const stretches = match.segments.map((each) => ({ start: each.target_start, end: each.target_end, mirrored: each.mirrored, label: `Segment ${clock(each.target_start)} - ${clock(each.target_end)}` }));
    timeline?.showSegments(stretches, (index) => show(index));
    panel.timeline?.showSegments(
      query.box ? [] : match.segments.map((each, index) => ({ ...stretches[index], start: each.query_start, end: each.query_end })),
      (index) => show(index),
    );
    const at = Math.max(match.segments.indexOf(segment), 0);
    if (segment) show(at, { play: !query.box && !panel.source.still });
    if (segment && !query.box && !panel.source.still && !source.still) {
      exactParts({ ...panel.source.key, target: match.video.id }, parts).then((exact) => {
        if (inStep === tools) sync.followers[0].parts = exact;
        for (const [index, part] of parts.entries()) if (sync.followers[0].only === part) sync.followers[0].only = exact[index];
      }, (error) => say(error.message));
    }
    // Both pictures on the screen, also where one is below the other.
    if (matchMedia("(max-width: 40rem)").matches) find("query").scrollIntoView();
    else find("target-panel").scrollIntoView({ block: "nearest" });
  } catch (error) {
    say(error.message);
  }
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
    let answer = null;
    try {
      answer = JSON.parse(request.responseText);
    } catch {
      answer = { detail: "The server does not answer; is `vidkin serve` still running?" };
    }
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
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "s") search();
  else if (event.key === "Escape" && running !== null && !event.defaultPrevented) running.abort();
  else if (inStep?.key(event)) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
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
