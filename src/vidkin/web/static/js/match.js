// Two videos side by side and the map of their frames.
import { api, byId as find, clock, count, make, say, waiting } from "./base.js";
import { readQuery } from "./addresses.js";
import { HeatMap } from "./heatmap.js";
import { MatchTools, describeSegment } from "./segments.js";
import { openSide } from "./timeline.js";

const side = (id, options) => openSide(find(id), JSON.parse(find(id).dataset.source), options);
const query = side("query", {});
const target = side("target", { muted: true });
const wanted = { ...readQuery(location.href), target: target.source.key.video };

function showSegments({ segments, has_segments: hasSegments }, tools) {
  if (segments.length === 0) {
    find("segments").replaceWith(make("p", { class: "facts" }, hasSegments ? "No stretch of one shows the other." : "Scores of this index order kinds of videos; there are no segments."));
    return;
  }
  find("segments").append(...segments.map((each, index) => make("li", {}, make("button", { type: "button", onclick: () => tools.playSegment(index) }, describeSegment(each)))));
  tools.playSegment(0, { play: false }); // where the best one begins, not where the files do
  tools.refine(wanted).finally(() => (find("sync").dataset.exact = "yes"));
}

function showMap(map, tools) {
  let timer = 0;
  find("map").append(map.element);
  map.addEventListener("point", ({ detail: { queryTime, targetTime, similarity } }) => {
    find("readout").textContent = `query ${clock(queryTime)}, target ${clock(targetTime)}: ${similarity.toFixed(2)}`;
    clearTimeout(timer);
    timer = setTimeout(() => {
      find("pair").hidden = false;
      for (const [id, { source }, time] of [["query-frame", query, queryTime], ["target-frame", target, targetTime]]) find(id).src = `${source.address}/thumbnail?time=${time.toFixed(1)}`;
    }, 80);
  });
  map.addEventListener("choose", ({ detail: { queryTime, targetTime } }) => {
    tools.sync.pause();
    tools.sync.followers[0].parts = []; // any two moments, until a segment is chosen
    tools.sync.followers[0].only = null;
    query.player.seek(queryTime);
    target.player.seek(targetTime);
  });
}

const began = performance.now();
const alive = setInterval(() => (find("elapsed").textContent = `${Math.round((performance.now() - began) / 1000)} s so far; the first comparison of two videos reads both.`), 1000);
try {
  const result = await api("/api/match", { method: "POST", body: wanted, onWait: (position) => (find("score").textContent = waiting(position, "Comparing...")) });
  find("map").classList.remove("waiting");
  find("score").textContent = `score ${result.score.toFixed(2)}, ${count(result.segments.length, "segment")}`;
  const tools = new MatchTools(query, target, find("players"), result.segments);
  find("sync").append(tools.element);
  showSegments(result, tools);
  showMap(new HeatMap(result.map, result.segments), tools);
} catch (error) {
  find("score").textContent = error.message;
  say(error.message);
} finally {
  clearInterval(alive);
  find("busy").hidden = true;
}
