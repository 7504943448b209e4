// One video: mark a part of it and search with that; its shots, if they are known, or with one click.
import { api, byId, card, clock, keyOf, make, placeStretch, say } from "./base.js";
import { Follower, followJob } from "./jobs.js";
import { QueryPanel } from "./query.js";
import { searchAddress } from "./addresses.js";

// Shots that the page shows; the timeline has them all.
const MOST = 12;
const place = byId("query");
const panel = place && new QueryPanel(JSON.parse(place.dataset.source));
if (panel !== null) {
  place.append(panel.element);
  const time = Number(new URLSearchParams(location.search).get("time") ?? NaN);
  if (time > 0) panel.player.seek(time);
  const go = () => (location.href = searchAddress(panel.describe()));
  byId("search").addEventListener("click", go);
  document.addEventListener("keydown", (event) => keyOf(event) === "s" && go());
}

const shots = byId("shots");
const address = `/api/videos/${shots?.dataset.video}/shots`;

async function showShots() {
  const found = await api(address);
  byId("find").hidden = found !== null;
  if (found === null) return;
  const cards = found.shots.slice(0, MOST).map((shot, index) =>
    card(`/videos/${shots.dataset.video}/shots`, shot.thumbnail, `${index + 1}: ${clock(shot.start)} - ${clock(shot.end)}`));
  const rest = found.shots.length - cards.length;
  if (rest > 0) cards.push(make("li", { class: "facts" }, `and ${rest} more on the timeline`));
  shots.querySelector("ul").replaceChildren(...cards);
}

function follow(job) {
  return followJob(job, shots.querySelector("#find div"), {
    button: shots.querySelector("button"),
    onEnd: ({ state }) => state === "done" && showShots(),
  });
}

if (shots !== null) {
  const jobs = new Follower(follow);
  shots.querySelector("button").addEventListener("click", () => jobs.begin(() => api(address, { method: "POST" })));
  showShots().then(() => jobs.join("shots", (job) => job.video === Number(shots.dataset.video)));
}

// What else is known, or found with one click: similar videos, parts that are elsewhere, parts that recur.

const show = {
  neighbors(section, found) {
    const from = section.dataset.video;
    section.querySelector("ul").replaceChildren(...found.map(({ score, at, video }) =>
      card(`/match?video=${from}&target=${video.id}`, at === null ? video.thumbnail : `${video.thumbnail}&time=${at.toFixed(1)}`, video.name, `score ${score.toFixed(2)}${at === null ? "" : `, from ${clock(at)}`}`)));
    if (!found.length) section.querySelector("ul").replaceChildren(make("li", { class: "facts" }, "There is no other video."));
  },
  coverage(section, { words, strip }) {
    const place = section.querySelector(".cover");
    place.hidden = false;
    const parts = strip.map(([start, end, elsewhere]) =>
      placeStretch(make("span", { class: elsewhere && "elsewhere", title: elsewhere ? "other videos show this, too" : "only in this video" }), start, end, 1));
    place.replaceChildren(make("div", { class: "cover-strip", role: "img", "aria-label": words.join(" ") }, ...parts), ...words.map((line) => make("p", { class: "facts" }, line)));
  },
  recurring(section, found) {
    const rows = found.map(({ kind, start, end, files, others }) =>
      make("li", {}, make("strong", {}, kind), ` ${clock(start)} - ${clock(end)}, also in ${others.join(", ")}${files - 1 > others.length ? " and others" : ""}`));
    section.querySelector("ul").replaceChildren(...(rows.length ? rows : [make("li", { class: "facts" }, "No part of it recurs in other videos.")]));
  },
};

for (const section of document.querySelectorAll(".known")) {
  const { find, video } = section.dataset;
  const path = `/api/videos/${video}/${find}`;
  const place = section.querySelector(".find");
  const done = (found) => {
    show[find](section, found);
    if (place) place.hidden = true;
  };
  // Coverage is cheap once and never stored: it is asked for by a click only.
  if (find !== "coverage") api(path).then((found) => found !== null && done(found));
  place?.querySelector("button").addEventListener("click", async (event) => {
    event.target.disabled = true;
    const status = place.querySelector("[role=status]");
    try {
      if (find === "recurring") {
        const job = await api("/api/recurring", { method: "POST", body: {} });
        if ((await followJob(job, place.querySelector(".work"))).state !== "done") return;
      } else status.textContent = "Reading the video...";
      done(await api(path, { method: find === "neighbors" ? "POST" : "GET" }));
    } finally {
      if (find !== "recurring") status.textContent = "";
      event.target.disabled = false;
    }
  });
}

const opener = byId("open");
async function openInPlayer() {
  const { player } = await api(`/api/videos/${place.dataset.video}/open`, { method: "POST", body: { time: panel.player.time } });
  say(`Opened in ${player}.`);
}
opener?.addEventListener("click", openInPlayer);
document.addEventListener("keydown", (event) => opener && keyOf(event) === "v" && openInPlayer());
