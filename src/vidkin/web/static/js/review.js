// Review: one pair after another, judged by mouse or key; a training, and the switch to what it made.
import { api, breakable, byId, clock, make, morph, onClick, onKey, post, refresher, say } from "./base.js";
import { Jobs } from "./jobs.js";
import { Player, playerKeys } from "./player.js";
import { MatchTools } from "./segments.js";

const shownPair = byId("pair");
const moments = [0.1, 0.37, 0.63, 0.9];
const jobs = new Jobs(byId("progress"), {
  quiet: true,
  onEnd: ({ state, error }) => {
    tell(state === "done" ? "Training finished; see Trainings below for what changed." : error || "Stopped.");
    return refresh();
  },
});
let waiting = [];
let busy = false;
let playing = null; // the two players of the pair that is shown
const given = []; // verdicts of this visit, for undo: {pair, before}
const moves = !matchMedia("(prefers-reduced-motion: reduce)").matches;

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
    this.tools = null;
    for (const player of this.players) {
      if (player.video) player.video.loop = true;
      playerKeys(player.element, player);
    }
    if (this.players.every((player) => player.video !== null)) this.#match(ids).catch(() => {}); // both play on by themselves
    if (moves) this.toggle();
  }

  async #match([video, target]) {
    const { segments } = await api("/api/match", { method: "POST", body: { video, target }, signal: this.stop.signal });
    if (!segments.length || this.stop.signal.aborted) return;
    const play = !this.paused;
    const [query, other] = this.players;
    for (const player of this.players) {
      player.pause();
      player.video.loop = false;
    }
    this.tools = new MatchTools({ player: query }, { player: other }, shownPair, segments);
    this.tools.again.checked = true;
    this.tools.playSegment(0, { play });
    shownPair.dataset.synced = "yes";
  }

  get paused() {
    return this.tools?.sync.paused ?? this.players.every((player) => player.paused);
  }

  toggle() {
    if (this.tools) return this.tools.toggle();
    const { paused } = this;
    for (const player of this.players) if (player.paused === paused) player.toggle();
  }

  end() {
    this.stop.abort();
    this.tools?.stop();
    for (const player of this.players) {
      player.pause();
      player.video?.removeAttribute("src");
    }
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
  await showPair().catch((error) => shownPair.replaceChildren(make("p", { class: "error" }, error.message)));
  for (const button of document.querySelectorAll("#verdicts button")) button.disabled = "undo" in button.dataset ? given.length === 0 : waiting.length === 0;
}

async function showPair() {
  if (shownPair.dataset.empty !== undefined) return; // the page says what to do
  if (waiting.length === 0) waiting = await api("/api/review/pairs?limit=12");
  playing?.end();
  playing = null;
  delete shownPair.dataset.synced;
  if (waiting.length === 0) return shownPair.replaceChildren(make("p", { class: "empty" }, "No pair is left to judge. Train on the verdicts, or add videos."));
  const { first, second } = waiting[0];
  const ids = [first.id, second.id];
  playing = new PairPlayers(await Promise.all(ids.map((id) => api(`/api/videos/${id}/source`))), ids);
  shownPair.replaceChildren(side(first, playing.players[0]), side(second, playing.players[1]));
}

const refresh = refresher((page) => {
  for (const id of ["state", "history"]) morph(byId(id), page.getElementById(id));
});

const store = ([first, second], verdict) => post("/api/review/pairs", { first, second, verdict });
const idsOf = ({ first, second }) => [first.id, second.id];

/** One at a time: a verdict, or the way back. */
async function alone(work) {
  if (busy) return;
  busy = true;
  try {
    await work();
    await show();
  } finally {
    busy = false;
  }
}

const judge = (verdict) => waiting.length && alone(async () => {
  const [pair] = waiting;
  if (verdict !== null) {
    await store(idsOf(pair), verdict);
    given.push({ pair, before: pair.verdict ?? "forget" });
    tell(`${pair.first.name} and ${pair.second.name}: ${verdict}.`);
    refresh();
  }
  waiting.shift();
});

/** Give a pair the verdict that it had before, and show it again. */
const undo = () => given.length && alone(async () => {
  const { pair, before } = given.pop();
  await store(idsOf(pair), before);
  waiting.unshift(pair);
  tell("Verdict undone.");
  refresh();
});

byId("history").addEventListener("change", async ({ target }) => {
  await store(JSON.parse(target.dataset.pair), target.value);
  tell(target.value === "forget" ? "Verdict undone." : `Now: ${target.value}.`);
  if (target.value === "forget") waiting = [];
  await refresh();
  if (waiting.length === 0) await show();
});
onClick({
  "[data-verdict]": ({ dataset }) => judge(dataset.verdict),
  "[data-skip]": () => judge(null),
  "[data-undo]": undo,
  "[data-train]": ({ dataset }) => jobs.begin(() => post("/api/review/train", { what: dataset.train })),
  "[data-use]": ({ dataset }) => post("/api/review/use", { what: dataset.use, use: dataset.value === "yes" }).then(refresh),
});
onKey((key, event) => (key === "p" && !event.repeat ? playing?.toggle() : false));
show();
jobs.join("review");
