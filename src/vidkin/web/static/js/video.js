// One video: mark a part of it and search with that; what else is known of it, or found with one click.
import { api, byId, fetchPage, make, morph, onClick, placeStretch, post, say } from "./base.js";
import { searchAddress } from "./addresses.js";
import { Jobs } from "./jobs.js";
import { QueryPanel } from "./query.js";

const place = byId("query");
const panel = place && new QueryPanel(JSON.parse(place.dataset.source));
const address = `/api/videos/${place?.dataset.video}`;
if (panel !== null) {
  place.append(panel.element);
  const time = Number(new URLSearchParams(location.search).get("time") ?? NaN);
  if (time > 0) panel.player.seek(time);
}

/** Show a section as the server has it now. */
async function update(id) {
  morph(byId(id), (await fetchPage()).getElementById(id));
}

function showCoverage({ words, strip }) {
  const parts = strip.map(([start, end, elsewhere]) =>
    placeStretch(make("span", { class: elsewhere && "elsewhere", title: elsewhere ? "other videos show this, too" : "only in this video" }), start, end, 1));
  const lines = words.map((line) => make("p", { class: "facts" }, line));
  const cover = document.querySelector("#coverage .cover");
  cover.replaceChildren(make("div", { class: "cover-strip", role: "img", "aria-label": words.join(" ") }, ...parts), ...lines);
  cover.hidden = false;
  document.querySelector("#coverage .find").hidden = true;
}

/** Ask for what takes a moment, and say so beside the button. */
async function read(button, ask) {
  const status = button.parentElement.querySelector("[role=status]");
  button.disabled = true;
  status.textContent = "Reading the video...";
  await ask().finally(() => {
    status.textContent = "";
    button.disabled = false;
  });
}

// What is found by jobs.
for (const [id, path, isOurs] of [["shots", `${address}/shots`, (job) => job.video === Number(place.dataset.video)], ["recurring", "/api/recurring", () => true]]) {
  const work = document.querySelector(`#${id} .work`);
  if (work === null) continue;
  const button = document.querySelector(`#${id} button`);
  const jobs = new Jobs(work, { button, onEnd: ({ state }) => state === "done" && update(id) });
  button.addEventListener("click", () => jobs.begin(() => post(path, {})));
  jobs.join(id, isOurs);
}

onClick({
  "#search": () => (location.href = searchAddress(panel.describe())),
  "#neighbors button": (button) => read(button, () => post(`${address}/neighbors`).then(() => update("neighbors"))),
  "#coverage button": (button) => read(button, () => api(`${address}/coverage`).then(showCoverage)),
  "#open": async () => {
    const { player } = await post(`${address}/open`, { time: panel.player.time });
    say(`Opened in ${player}.`);
  },
});
