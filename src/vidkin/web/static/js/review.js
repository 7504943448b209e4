// Review: one pair after another, judged by mouse or key; a training, and the switch to what it made.
import { api, breakable, byId, clock, keyOf, make, putInPlace, refresher, say } from "./base.js";
import { Follower, followJob } from "./jobs.js";
import { Player, playerKeys } from "./player.js";
import { partOf } from "./segments.js";
import { Sync } from "./sync.js";

const shownPair = byId("pair");
const moments = [0.1, 0.37, 0.63, 0.9];
const jobs = new Follower(follow);
let waiting = [];
let busy = false;
let playing = null; // the two players of the pair that is shown
const given = []; // verdicts of this visit, for undo: {pair, before}
const moves = !matchMedia("(prefers-reduced-motion: reduce)").matches;
const editable = byId("verdicts") !== null;

/** A line below the buttons; it covers nothing. */
function tell(text) {
  const line = byId("told");
  if (line === null) say(text);
  else line.textContent = text;
}

/** Two muted players: each from its begin, and side by side in sync once it is known where they match. */
class PairPlayers {
  constructor(sources, ids) {
    this.players = sources.map((source) => new Player(source, { muted: true }));
    this.stop = new AbortController();
    this.sync = null;
    for (const player of this.players) {
      player.video?.addEventListener("ended", () => this.sync === null && player.piece === null && (player.seek(0), player.play()));
      playerKeys(player.element, player);
    }
    if (this.players.every((player) => player.video !== null)) this.#match(ids);
    if (moves) this.play();
  }

  async #match([video, target]) {
    try {
      const { segments } = await api("/api/match", { method: "POST", body: { video, target }, signal: this.stop.signal });
      if (!segments.length || this.stop.signal.aborted) return;
      const on = !this.paused;
      this.pause();
      const parts = segments.map(partOf);
      this.sync = new Sync(this.players[0], [{ player: this.players[1], parts }]);
      this.sync.repeat({ start: parts[0].start, end: parts[0].end, again: true });
      this.sync.seek(parts[0].start, parts[0]);
      shownPair.dataset.synced = "yes";
      if (on) this.sync.play();
    } catch {
      // Another pair is shown, or one of them cannot be read: both play on by themselves.
    }
  }

  get paused() {
    return this.sync?.paused ?? this.players.every((player) => player.paused);
  }

  play() {
    if (this.sync) this.sync.play();
    else for (const player of this.players) player.play();
  }

  pause() {
    if (this.sync) this.sync.pause();
    else for (const player of this.players) player.pause();
  }

  toggle() {
    if (this.paused) this.play();
    else this.pause();
  }

  end() {
    this.stop.abort();
    this.pause();
    this.sync?.stop();
    for (const { video } of this.players) if (video) video.removeAttribute("src");
  }
}

function side(video, player) {
  const frames = moments.map((share) =>
    make("img", {
      src: `${video.thumbnail}&time=${(share * video.duration).toFixed(1)}`,
      alt: `at ${clock(share * video.duration)}`,
    }),
  );
  const link = make("a", { href: `/videos/${video.id}` }, ...breakable(video.name));
  const facts = make("span", { class: "facts" }, ` ${clock(video.duration)}`);
  return make("div", { class: "side" }, player.element, make("div", { class: "frames" }, ...frames), make("p", { class: "caption" }, link, facts));
}

async function show() {
  await showPair();
  for (const button of document.querySelectorAll("#verdicts button")) button.disabled = "undo" in button.dataset ? given.length === 0 : waiting.length === 0;
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
  playing?.end();
  playing = null;
  delete shownPair.dataset.synced;
  if (waiting.length === 0) shownPair.replaceChildren(make("p", { class: "empty" }, "No pair is left to judge. Train on the verdicts, or add videos."));
  else {
    const pair = waiting[0];
    const ids = [pair.first.id, pair.second.id];
    try {
      const sources = await Promise.all(ids.map((id) => api(`/api/videos/${id}/source`)));
      playing = new PairPlayers(sources, ids);
      shownPair.replaceChildren(side(pair.first, playing.players[0]), side(pair.second, playing.players[1]));
    } catch (error) {
      shownPair.replaceChildren(make("p", { class: "error" }, error.message));
    }
  }
}

const refresh = refresher((page) => {
  putInPlace(byId("state"), page.getElementById("state"));
  return showHistory();
});

async function judge(verdict) {
  const pair = waiting[0];
  if (pair === undefined || busy) return;
  busy = true;
  try {
    if (verdict !== null) {
      const body = { first: pair.first.id, second: pair.second.id, verdict };
      await api("/api/review/pairs", { method: "POST", body });
      given.push({ pair, before: pair.verdict ?? null });
      tell(`${pair.first.name} and ${pair.second.name}: ${verdict}.`);
      refresh();
    }
    waiting.shift();
    await show();
  } finally {
    busy = false;
  }
}

/** Give a pair the verdict that it had before, and show it again. */
async function undo() {
  const last = given.pop();
  if (last === undefined || busy) return;
  busy = true;
  try {
    const { pair, before } = last;
    await api("/api/review/pairs", { method: "POST", body: { first: pair.first.id, second: pair.second.id, verdict: before ?? "forget" } });
    waiting.unshift(pair);
    tell("Verdict undone.");
    refresh();
    await show();
  } finally {
    busy = false;
  }
}

const VERDICTS = { same: "same", "same kind": "same kind", different: "different", forget: "no verdict" };

async function showHistory() {
  const past = await api("/api/review/history");
  const rows = past.map(({ first, second, verdict, given: when }) => {
    const names = make("span", {}, make("a", { href: `/match?video=${first.id}&target=${second.id}` }, `${first.name} and ${second.name}`));
    const day = make("span", { class: "facts" }, new Date(when).toLocaleString());
    if (!editable) return make("li", {}, names, make("strong", {}, verdict), day);
    const choice = make("select", { "aria-label": `Verdict on ${first.name} and ${second.name}`, onchange: async () => {
      await api("/api/review/pairs", { method: "POST", body: { first: first.id, second: second.id, verdict: choice.value } });
      tell(choice.value === "forget" ? "Verdict undone." : `Now: ${choice.value}.`);
      if (choice.value === "forget") waiting = [];
      await refresh();
      if (waiting.length === 0) await show();
    } }, ...Object.entries(VERDICTS).map(([value, words]) => make("option", { value, selected: value === verdict }, words)));
    return make("li", {}, names, choice, day);
  });
  byId("history").replaceChildren(...(rows.length ? rows : [make("li", { class: "facts" }, "No verdict yet.")]));
}

const train = (what) => jobs.begin(() => api("/api/review/train", { method: "POST", body: { what } }));

function follow(job) {
  return followJob(job, byId("progress"), {
    quiet: true,
    onEnd: ({ state, error }) => {
      tell(state === "done" ? "Training finished; see Trainings below for what changed." : error || "Stopped.");
      return refresh();
    },
  });
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (button === null) return;
  const { verdict, train: what, use, value } = button.dataset;
  if (verdict !== undefined) judge(verdict);
  else if ("skip" in button.dataset) judge(null);
  else if ("undo" in button.dataset) undo();
  else if (what !== undefined) train(what);
  else if (use !== undefined) {
    await api("/api/review/use", { method: "POST", body: { what: use, use: value === "yes" } });
    await refresh();
  }
});
document.addEventListener("keydown", (event) => {
  const key = event.repeat ? null : keyOf(event);
  if (key === "p" && playing !== null) playing.toggle();
  const index = ["1", "2", "3", "s", "u"].indexOf(key);
  const button = document.querySelectorAll("#verdicts button")[index];
  if (button) {
    event.preventDefault();
    button.click();
  }
});
show();
showHistory();
jobs.join("review");
