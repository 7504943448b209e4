// Two videos side by side and the map of their frames.
import { api, byId as find, clock, count, keyOf, make, say, waiting } from "./base.js";
import { readQuery } from "./addresses.js";
import { HeatMap } from "./heatmap.js";
import { describeSegment, exactParts, partOf, stretchesOf } from "./segments.js";
import { Sync, SyncTools } from "./sync.js";
import { openSide } from "./timeline.js";

const side = (id, options) => openSide(find(id), JSON.parse(find(id).dataset.source), options);
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
  parts = result.segments.map(partOf);
  sync.followers[0].parts = parts;
  const play = (index, options) => {
    sync.followers[0].parts = parts;
    tools.playStretch(parts[index], { only: parts[index], ...options });
  };
  for (const [name, part] of [["query", query], ["target", target]]) {
    part.timeline?.showSegments(stretchesOf(result.segments, name), play);
  }
  find("segments").replaceChildren(
    ...result.segments.map((each, index) => make("li", {}, make("button", { type: "button", onclick: () => play(index) }, describeSegment(each)))),
  );
  if (result.segments.length) {
    play(0, { play: false }); // where the best one begins, not where the files do
    exactParts(wanted, parts).then((exact) => {
      parts = exact;
      sync.followers[0].parts = exact;
      if (sync.paused) play(0, { play: false });
    }).finally(() => (find("sync").dataset.exact = "yes"));
  } else {
    find("segments").replaceWith(make("p", { class: "facts" }, result.has_segments ? "No stretch of one shows the other." : "Scores of this index order kinds of videos; there are no segments."));
  }
}

const began = performance.now();
const alive = setInterval(() => (find("elapsed").textContent = `${Math.round((performance.now() - began) / 1000)} s so far; the first comparison of two videos reads both.`), 1000);
try {
  const result = await api("/api/match", { method: "POST", body: wanted, onWait: (position) => (find("score").textContent = waiting(position, "Comparing...")) });
  find("map").classList.remove("waiting");
  find("score").textContent = `score ${result.score.toFixed(2)}, ${count(result.segments.length, "segment")}`;
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
document.addEventListener("keydown", (event) => keyOf(event) !== null && !event.target.closest(".heat") && tools.key(event));
