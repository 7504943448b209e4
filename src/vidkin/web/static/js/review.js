// Review: one pair after another, judged by mouse or key; a training, and the switch to what it made.
import { api, clock, make, runningJob, say, showProgress, watchJob } from "./base.js";

const shownPair = document.getElementById("pair");
const progress = document.getElementById("progress");
const moments = [0.1, 0.37, 0.63, 0.9];
let waiting = [];
let busy = false;

function side(video) {
  const frames = moments.map((share) =>
    make("img", {
      src: `${video.thumbnail}&time=${(share * video.duration).toFixed(1)}`,
      alt: `at ${clock(share * video.duration)}`,
    }),
  );
  const link = make("a", { href: `/videos/${video.id}` }, video.name);
  const facts = make("span", { class: "facts" }, ` ${clock(video.duration)}`);
  return make("figure", {}, make("div", { class: "frames" }, ...frames), make("figcaption", {}, link, facts));
}

async function show() {
  await showPair();
  for (const button of document.querySelectorAll("#verdicts button")) button.disabled = waiting.length === 0;
}

async function showPair() {
  if (shownPair.dataset.empty !== undefined) return; // the page says what to do
  if (waiting.length === 0) {
    try {
      waiting = await api("/api/review/pairs?limit=12");
    } catch (error) {
      shownPair.replaceChildren(make("p", { class: "error" }, error.message));
      return;
    }
  }
  if (waiting.length === 0) shownPair.replaceChildren(make("p", { class: "empty" }, "No pair is left to judge. Train on the verdicts, or add videos."));
  else shownPair.replaceChildren(side(waiting[0].first), side(waiting[0].second));
}

async function refresh() {
  const answer = await fetch("/review", { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.getElementById("state").replaceWith(page.getElementById("state"));
}

async function judge(verdict) {
  const pair = waiting[0];
  if (pair === undefined || busy) return;
  busy = true;
  try {
    if (verdict !== null) {
      const body = { first: pair.first.id, second: pair.second.id, verdict };
      await api("/api/review/pairs", { method: "POST", body });
      refresh().catch((error) => say(error.message));
    }
    waiting.shift();
    await show();
  } catch (error) {
    say(error.message);
  } finally {
    busy = false;
  }
}

async function train(what) {
  try {
    await follow(await api("/api/review/train", { method: "POST", body: { what } }));
  } catch (error) {
    say(error.message);
  }
}

async function follow(job) {
  progress.hidden = false;
  try {
    const ended = await watchJob(job.id, (state) => showProgress(progress, state));
    say(ended.state === "done" ? `On held-back verdicts: ${ended.result.judgment}.` : ended.error || "Stopped.", { seconds: 10 });
    await refresh();
  } catch (error) {
    say(error.message);
  } finally {
    progress.hidden = true;
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (button === null) return;
  const { verdict, train: what, use, value } = button.dataset;
  if (verdict !== undefined) judge(verdict);
  else if ("skip" in button.dataset) judge(null);
  else if (what !== undefined) train(what);
  else if (use !== undefined) {
    try {
      await api("/api/review/use", { method: "POST", body: { what: use, use: value === "yes" } });
      await refresh();
    } catch (error) {
      say(error.message);
    }
  }
});
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.repeat || event.target.closest("input, select, textarea")) return;
  const index = ["1", "2", "3", "s"].indexOf(event.key.toLowerCase());
  const button = document.querySelectorAll("#verdicts button")[index];
  if (button) {
    event.preventDefault();
    button.click();
  }
});
show();
const training = await runningJob("review");
if (training !== undefined) follow(training);
