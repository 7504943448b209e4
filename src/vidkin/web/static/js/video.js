// One video: mark a part of it and search with that; its shots, if they are known, or with one click.
import { Follower, api, breakable, clock, make, say, showProgress, watchJob } from "./base.js";
import { QueryPanel } from "./query.js";
import { searchAddress } from "./addresses.js";

// Shots that the page shows; the timeline has them all.
const MOST = 12;
const place = document.getElementById("query");
const panel = place && new QueryPanel(JSON.parse(place.dataset.source));
if (panel !== null) {
  place.append(panel.element);
  const time = Number(new URLSearchParams(location.search).get("time") ?? NaN);
  if (time > 0) panel.player.seek(time);
  const go = () => (location.href = searchAddress(panel.describe()));
  document.getElementById("search").addEventListener("click", go);
  document.addEventListener("keydown", (event) => {
    if (event.key === "s" && !event.target.closest("input, select, textarea") && !event.ctrlKey && !event.metaKey) go();
  });
}

const shots = document.getElementById("shots");
const address = `/api/videos/${shots?.dataset.video}/shots`;

async function showShots() {
  const found = await api(address);
  document.getElementById("find").hidden = found !== null;
  if (found === null) return;
  const cards = found.shots.slice(0, MOST).map((shot, index) =>
    make("li", { class: "card" }, make("a", { href: `/videos/${shots.dataset.video}/shots` },
      make("span", { class: "picture" }, make("img", { src: shot.thumbnail, alt: "", loading: "lazy", width: 240, height: 135 })),
      make("span", { class: "name" }, `${index + 1}: ${clock(shot.start)} - ${clock(shot.end)}`))));
  const rest = found.shots.length - cards.length;
  if (rest > 0) cards.push(make("li", { class: "facts" }, `and ${rest} more on the timeline`));
  shots.querySelector("ul").replaceChildren(...cards);
}

async function follow(job) {
  const [button, progress] = [shots.querySelector("button"), shots.querySelector("#find div")];
  button.disabled = true;
  progress.hidden = false;
  try {
    const ended = await watchJob(job.id, (state) => showProgress(progress, state));
    if (ended.state === "done") await showShots();
    else say(ended.error || "Stopped.");
  } finally {
    button.disabled = false;
    progress.hidden = true;
  }
}

if (shots !== null) {
  const jobs = new Follower(follow);
  shots.querySelector("button").addEventListener("click", () =>
    jobs.begin(() => api(address, { method: "POST" })));
  showShots().then(() => jobs.join("shots", (job) => job.video === Number(shots.dataset.video))).catch((error) => say(error.message));
}

// What else is known, or found with one click: similar videos, parts that are elsewhere, parts that recur.

const card = (href, picture, name, facts) =>
  make("li", { class: "card" }, make("a", { href },
    make("span", { class: "picture" }, make("img", { src: picture, alt: "", loading: "lazy", width: 240, height: 135 })),
    make("span", { class: "name" }, ...breakable(name))), make("span", { class: "facts" }, facts));

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
    const parts = strip.map(([start, end, elsewhere]) => {
      const part = make("span", { class: elsewhere && "elsewhere", title: elsewhere ? "other videos show this, too" : "only in this video" });
      part.style.left = `${100 * start}%`;
      part.style.width = `${100 * (end - start)}%`;
      return part;
    });
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
  if (find !== "coverage") api(path).then((found) => found !== null && done(found), (error) => say(error.message));
  place?.querySelector("button").addEventListener("click", async (event) => {
    event.target.disabled = true;
    const status = place.querySelector("[role=status]");
    try {
      if (find === "recurring") {
        const work = place.querySelector(".work");
        work.hidden = false;
        const ended = await watchJob((await api("/api/recurring", { method: "POST", body: {} })).id, (state) => showProgress(work, state));
        if (ended.state !== "done") throw new Error(ended.error || "Stopped.");
      } else status.textContent = "Reading the video...";
      done(await api(path, { method: find === "neighbors" ? "POST" : "GET" }));
    } catch (error) {
      status.textContent = "";
      say(error.message);
    } finally {
      event.target.disabled = false;
    }
  });
}

const opener = document.getElementById("open");
async function openInPlayer() {
  const time = panel.player.time;
  const number = document.querySelector(".known").dataset.video;
  try {
    const { player } = await api(`/api/videos/${number}/open`, { method: "POST", body: { time } });
    say(`Opened in ${player}.`);
  } catch (error) {
    say(error.message);
  }
}
opener?.addEventListener("click", openInPlayer);
document.addEventListener("keydown", (event) => {
  if (opener && event.key === "v" && !event.target.closest("input, select, textarea") && !event.ctrlKey && !event.metaKey && !event.altKey) openInPlayer();
});
