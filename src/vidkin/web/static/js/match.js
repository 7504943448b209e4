// Two videos side by side and the map of their frames.
import { api, clock, make, say, waiting } from "./base.js";
import { readQuery } from "./addresses.js";
import { HeatMap } from "./heatmap.js";
import { Player, playerKeys } from "./player.js";
import { Sync, SyncTools, exactParts, partOf } from "./sync.js";
import { Timeline } from "./timeline.js";

const find = (id) => document.getElementById(id);

function side(id, options) {
  const source = JSON.parse(find(id).dataset.source);
  const player = new Player(source, options);
  const timeline = source.still ? null : new Timeline(player);
  find(id).append(player.element);
  if (timeline) player.element.append(timeline.element);
  playerKeys(player.element, player);
  return { source, player, timeline };
}

const query = side("query", {});
const target = side("target", { muted: true });
target.player.element.classList.add("follower");
const stage = find("players");
const sync = new Sync(query.player, [{ player: target.player, parts: [] }]);
const tools = new SyncTools(sync, stage);
find("sync").append(tools.element);
let parts = [];
const wanted = readQuery(location.href);
wanted.target = target.source.key.video;

function thumbnailAt(source, time) {
  return `${source.address}/thumbnail?time=${time.toFixed(1)}`;
}

function showSegments(result) {
  const label = (segment) =>
    [`${clock(segment.query_start)} - ${clock(segment.query_end)} at ${clock(segment.target_start)} - ${clock(segment.target_end)}`,
      `score ${segment.score.toFixed(2)}`, segment.speed < 0.95 || segment.speed > 1.05 ? `speed ${segment.speed.toFixed(2)}` : "",
      segment.mirrored ? "mirrored" : "", segment.turned ? `turned ${segment.turned} degrees` : "", segment.part].filter(Boolean).join(", ");
  parts = result.segments.map(partOf);
  sync.followers[0].parts = parts;
  const play = (index, options) => {
    sync.followers[0].parts = parts;
    tools.playStretch(parts[index], { only: parts[index], ...options });
  };
  for (const [name, part] of [["query", query], ["target", target]]) {
    part.timeline?.showSegments(
      result.segments.map((each) => ({ start: each[`${name}_start`], end: each[`${name}_end`], mirrored: each.mirrored, label: label(each) })),
      play,
    );
  }
  find("segments").replaceChildren(
    ...result.segments.map((each, index) => make("li", {}, make("button", { type: "button", onclick: () => play(index) }, label(each)))),
  );
  if (result.segments.length) {
    play(0, { play: false }); // where the best one begins, not where the files do
    exactParts(wanted, parts).then((exact) => {
      parts = exact;
      sync.followers[0].parts = exact;
      if (sync.paused) play(0, { play: false });
    }, (error) => say(error.message)).finally(() => (find("sync").dataset.exact = "yes"));
  } else {
    find("segments").replaceWith(make("p", { class: "facts" }, result.has_segments ? "No stretch of one shows the other." : "Scores of this index order kinds of videos; there are no segments."));
  }
}

const began = performance.now();
const alive = setInterval(() => (find("elapsed").textContent = `${Math.round((performance.now() - began) / 1000)} s so far; the first comparison of two videos reads both.`), 1000);
try {
  const result = await api("/api/match", { method: "POST", body: wanted, onWait: (position) => (find("score").textContent = waiting(position, "Comparing...")) });
  find("map").classList.remove("waiting");
  find("score").textContent = `score ${result.score.toFixed(2)}, ${result.segments.length} ${result.segments.length === 1 ? "segment" : "segments"}`;
  showSegments(result);
  const map = new HeatMap(result.map, result.segments);
  find("map").append(map.element);
  let timer = 0;
  map.addEventListener("point", (event) => {
    const { queryTime, targetTime, similarity } = event.detail;
    find("readout").textContent = `query ${clock(queryTime)}, target ${clock(targetTime)}: ${similarity.toFixed(2)}`;
    clearTimeout(timer);
    timer = setTimeout(() => {
      find("pair").hidden = false;
      find("query-frame").src = thumbnailAt(query.source, queryTime);
      find("target-frame").src = thumbnailAt(target.source, targetTime);
    }, 80);
  });
  map.addEventListener("choose", (event) => {
    sync.pause();
    sync.followers[0].parts = []; // any two moments, until a segment is chosen
    query.player.seek(event.detail.queryTime);
    target.player.seek(event.detail.targetTime);
  });
} catch (error) {
  find("score").textContent = error.message;
  say(error.message);
} finally {
  clearInterval(alive);
  find("busy").hidden = true;
}
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea, .heat")) return;
  tools.key(event);
});
