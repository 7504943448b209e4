// One video: mark a part of it and search with that; its shots, if they are known, or with one click.
import { api, clock, make, runningJob, say, showProgress, watchJob } from "./base.js";
import { QueryPanel } from "./query.js";
import { searchAddress } from "./addresses.js";

// Shots that the page shows; the timeline has them all.
const MOST = 12;
const place = document.getElementById("query");
if (place !== null) {
  const panel = new QueryPanel(JSON.parse(place.dataset.source));
  place.append(panel.element);
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
  shots.querySelector("button").addEventListener("click", () =>
    api(address, { method: "POST" }).then(follow).catch((error) => say(error.message)));
  showShots().then(() => runningJob("shots")).then((job) => job?.video === Number(shots.dataset.video) && follow(job)).catch((error) => say(error.message));
}
