// Shots: a timeline whose cuts are dragged, added and removed, beside a player.
import { Follower, api, clock, make, say, showProgress, watchJob } from "./base.js";
import { Player, playerKeys } from "./player.js";

const root = document.getElementById("shots");
const video = root.dataset.video;
const editable = root.dataset.editable !== "";
const timeline = document.getElementById("timeline");
const address = `/api/videos/${video}/shots`;
const byId = (name) => document.getElementById(name);
const player = new Player(JSON.parse(byId("player").dataset.source));
byId("player").append(player.element);
playerKeys(player.element, player);
const jobs = new Follower(follow);
let shown = null;
let cuts = [];
let chosen = null;
let changed = false;
const picked = new Set();

const percent = (time) => `${(100 * time) / shown.duration}%`;
const frame = () => 1 / shown.frame_rate;

async function load() {
  const list = await api(address);
  if (list === null) byId("find").hidden = false;
  else accept(list);
}

function accept(list) {
  shown = list;
  cuts = list.cuts.map((cut) => ({ ...cut }));
  changed = false;
  chosen = null;
  picked.clear();
  showPicked();
  byId("find").hidden = true;
  byId("editor").hidden = false;
  draw();
}

function draw() {
  const whose = changed ? "not saved yet" : shown.corrected ? "as you corrected them" : shown.detector === "default" ? "found by the default detector" : `found by detector ${shown.detector}`;
  byId("facts").textContent = `${cuts.length === 1 ? "1 cut" : cuts.length ? `${cuts.length} cuts` : "One shot, no cut"} (${whose}), ${clock(shown.duration)}, ${Number(shown.frame_rate.toFixed(3))} frames a second`;
  const edges = [0, ...cuts.map((cut) => cut.time), shown.duration];
  byId("bands").replaceChildren(
    ...edges.slice(1).map((end, index) => {
      const band = make("span", { class: isCritical(edges[index], end) && "critical" });
      band.style.left = percent(edges[index]);
      band.style.width = percent(end - edges[index]);
      return band;
    }),
  );
  byId("cuts").replaceChildren(...cuts.map(handle));
  fitHandles();
  // Only what is there; the curve always is.
  const kinds = new Set([...cuts.map((cut) => cut.kind), byId("bands").querySelector(".critical") && "critical", shown.curve.length && "curve"]);
  for (const entry of document.querySelectorAll(".legend li")) entry.hidden = !kinds.has(entry.className);
  byId("list").replaceChildren(...edges.slice(1).map((end, index) => item(index, edges[index], end)));
  if (editable) {
    byId("save").disabled = !changed;
    byId("reset").disabled = !changed && !shown.corrected;
    byId("remove").disabled = chosen === null;
  }
  drawCurve();
}

/** No handle lies over another one: each is as wide as the way to its neighbors allows. */
function fitHandles() {
  const width = timeline.getBoundingClientRect().width;
  for (const [index, button] of [...byId("cuts").children].entries()) {
    const near = [index - 1, index + 1].filter((other) => cuts[other]).map((other) => Math.abs(cuts[other].time - cuts[index].time));
    const room = (Math.min(...near, shown.duration) / shown.duration) * width;
    button.style.setProperty("--wide", `${Math.max(Math.min(24, room), 3)}px`);
  }
}

function isCritical(start, end) {
  return shown.shots.some((shot) => shot.is_critical && shot.end > start + 1e-6 && shot.end <= end + frame());
}

function handle(cut) {
  const name = `${cut.kind} cut at ${clock(cut.time)}`;
  const button = make("button", {
    type: "button", class: cut.kind, title: name, "aria-label": name, "aria-current": cut === chosen && "true",
    onclick: () => choose(cut, true),
    onfocus: () => chosen !== cut && choose(cut, false),
    onpointerdown: (event) => editable && drag(event, cut),
  });
  button.style.left = percent(cut.time);
  return button;
}

function item(index, start, end) {
  const shot = shown.shots.find((one) => Math.abs(one.start - start) < 1e-6);
  const picture = make("img", { alt: "", loading: "lazy", width: 240, height: 135, src: (shot ?? shown.shots[0]).thumbnail.replace(/time=[\d.]+/, `time=${((start + end) / 2).toFixed(2)}`) });
  const kind = index === 0 ? "start" : cuts[index - 1].kind;
  const words = isCritical(start, end) ? `${kind}, critical` : kind;
  const card = make("button", { type: "button", onclick: () => seek(start) },
    make("span", { class: "picture" }, picture),
    make("span", { class: "name" }, `${index + 1}: ${clock(start)} - ${clock(end)}`),
    make("span", { class: "facts" }, words));
  const box = make("input", { type: "checkbox", "aria-label": `Select shot ${index + 1}`, onchange: (event) => pickShot(index + 1, event.target.checked) });
  box.checked = picked.has(index + 1);
  return make("li", { class: words === kind ? "card" : "card critical" }, card, make("label", { class: "pick-shot" }, box, " select"));
}

// Shots that are selected for a clip, by number from 1.

function pickShot(number, on) {
  if (on) picked.add(number);
  else picked.delete(number);
  showPicked();
}

function showPicked() {
  const count = picked.size;
  byId("picked").textContent = count ? `${count} ${count === 1 ? "shot" : "shots"} selected` : "Select shots to make a clip of them.";
  byId("pick-all").textContent = count ? "Select none" : "Select all";
  byId("join").disabled = count === 0;
  byId("clip").hidden = true;
}

function pickAll() {
  const boxes = [...byId("list").querySelectorAll("input")];
  const on = picked.size === 0;
  for (const [index, box] of boxes.entries()) {
    box.checked = on;
    pickShot(index + 1, on);
  }
}

/** Write the selected shots, as one clip or into a folder; resolves with the result of the job. */
async function makeClips(folder) {
  if (changed) return say("Save first: clips have the cuts that are saved.");
  const panel = byId("making");
  try {
    const job = await api(`/api/videos/${video}/clips`, { method: "POST", body: { shots: [...picked].sort((a, b) => a - b), folder } });
    panel.hidden = false;
    const ended = await watchJob(job.id, (state) => showProgress(panel, state));
    if (ended.state !== "done") throw new Error(ended.error || "Stopped.");
    return ended.result;
  } catch (error) {
    say(error.message);
  } finally {
    panel.hidden = true;
  }
}

async function join() {
  const made = await makeClips(null);
  if (!made) return;
  byId("clip").href = made.address;
  byId("clip").hidden = false;
  byId("clip").focus();
}

async function split() {
  const dialog = byId("splitting");
  dialog.returnValue = "";
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  if (dialog.returnValue !== "split") return;
  const made = await makeClips(dialog.querySelector("input").value);
  if (made) say(`${made.files.length} ${made.files.length === 1 ? "file" : "files"} in ${made.folder}.`, { seconds: 12 });
}

// What is at a moment of the timeline is shown above it.
function peek(event) {
  const box = timeline.getBoundingClientRect();
  const time = Math.min(Math.max(((event.clientX - box.left) / box.width) * shown.duration, 0), shown.duration);
  const panel = byId("peek");
  const half = 80;
  panel.hidden = false;
  panel.style.left = `${Math.min(Math.max(event.clientX - box.left, half), box.width - half)}px`;
  panel.querySelector("span").textContent = clock(time);
  clearTimeout(peek.timer);
  peek.timer = setTimeout(() => (panel.querySelector("img").src = `/videos/${video}/thumbnail?time=${time.toFixed(1)}`), 60);
}

function drawCurve() {
  const canvas = byId("curve");
  const pen = canvas.getContext("2d");
  pen.clearRect(0, 0, canvas.width, canvas.height);
  // Probabilities keep their scale, so that a curve without a cut looks like one.
  const highest = Math.max(...shown.curve.map((point) => point[1]), 1);
  pen.strokeStyle = getComputedStyle(root).getPropertyValue("--quiet");
  pen.lineWidth = 2;
  pen.beginPath();
  for (const [time, value] of shown.curve) pen.lineTo((time / shown.duration) * canvas.width, 78 - (value / highest) * 74);
  pen.stroke();
}

function seek(time) {
  // Half a frame further in, so that the player shows the frame that begins then.
  player.seek(time + frame() / 2);
}

function choose(cut, seeks) {
  chosen = cut;
  for (const [index, button] of [...byId("cuts").children].entries()) {
    if (cuts[index] === cut) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  if (editable) byId("remove").disabled = cut === null;
  if (cut !== null && seeks) seek(cut.time);
}

function focusChosen() {
  byId("cuts").children[cuts.indexOf(chosen)]?.focus();
}

function place(cut, time) {
  const wanted = Math.round(time / frame()) * frame();
  cut.time = Math.min(Math.max(wanted, frame()), shown.duration - frame());
  cuts.sort((one, other) => one.time - other.time);
  changed = true;
}

function drag(event, cut) {
  if (event.button !== 0) return;
  const box = timeline.getBoundingClientRect();
  const from = event.clientX;
  const button = event.target;
  button.setPointerCapture(event.pointerId);
  let moved = false;
  button.onpointermove = (move) => {
    if (!moved && Math.abs(move.clientX - from) < 3) return;
    moved = true;
    const time = ((move.clientX - box.left) / box.width) * shown.duration;
    button.style.left = percent(Math.min(Math.max(time, frame()), shown.duration - frame()));
    seek(time);
  };
  button.onpointerup = (up) => {
    button.onpointermove = button.onpointerup = null;
    if (!moved) return;
    place(cut, ((up.clientX - box.left) / box.width) * shown.duration);
    chosen = cut;
    draw();
    focusChosen();
  };
}

function add() {
  const cut = { time: 0, kind: byId("kind").value, confidence: 1 };
  const time = Math.floor(player.time / frame() + 1e-6) * frame();
  if (cuts.some((other) => Math.abs(other.time - time) < frame() / 2)) return say("There is a cut here already.");
  cuts.push(cut);
  place(cut, time);
  chosen = cut;
  draw();
  focusChosen();
}

function remove() {
  if (chosen === null) return;
  const index = cuts.indexOf(chosen);
  cuts.splice(index, 1);
  changed = true;
  chosen = cuts[Math.min(index, cuts.length - 1)] ?? null;
  draw();
  focusChosen();
}

async function store(method) {
  try {
    const body = method === "PUT" ? { cuts: cuts.map(({ time, kind }) => ({ time, kind })) } : undefined;
    accept(await api(address, { method, body }));
    say(method === "PUT" ? "Saved." : "These are the cuts that were detected.");
  } catch (error) {
    say(error.message);
  }
}

const find = () => jobs.begin(() => api(address, { method: "POST" }));

async function follow(job) {
  const [button, progress] = [byId("find").querySelector("button"), byId("find").querySelector("div")];
  byId("find").hidden = progress.hidden = false;
  button.disabled = true;
  try {
    const ended = await watchJob(job.id, (state) => showProgress(progress, state));
    if (ended.state === "done") await load();
    else say(ended.error || "Stopped.");
    return ended;
  } finally {
    button.disabled = false;
    progress.hidden = true;
  }
}

/** Show the shots; a page that is opened while they are being found shows how far that is. */
async function begin() {
  try {
    if ((await jobs.join("shots", (job) => job.video === Number(video))) === null) await load();
    const time = Number(new URLSearchParams(location.search).get("time") ?? NaN);
    if (shown !== null && time >= 0) seek(Math.min(time, shown.duration - frame()));
  } catch (error) {
    say(error.message);
  }
}

byId("find").querySelector("button").addEventListener("click", find);
timeline.addEventListener("click", (event) => {
  if (event.target.closest("#cuts button")) return;
  const box = timeline.getBoundingClientRect();
  seek(((event.clientX - box.left) / box.width) * shown.duration);
});
timeline.addEventListener("pointermove", (event) => shown !== null && event.pointerType === "mouse" && peek(event));
timeline.addEventListener("pointerleave", () => (byId("peek").hidden = true));
byId("pick-all").addEventListener("click", pickAll);
byId("join").addEventListener("click", join);
byId("split")?.addEventListener("click", split);
player.addEventListener("time", () => {
  if (shown !== null) byId("now").style.left = percent(Math.min(player.time, shown.duration));
});
byId("zoom").addEventListener("input", (event) => {
  timeline.style.width = `${100 * 2 ** Number(event.target.value)}%`;
  fitHandles();
  byId("now").scrollIntoView({ inline: "center", block: "nearest" });
});
if (editable) {
  byId("add").addEventListener("click", add);
  byId("remove").addEventListener("click", remove);
  byId("save").addEventListener("click", () => store("PUT"));
  byId("reset").addEventListener("click", () => (shown.corrected ? store("DELETE") : accept(shown)));
}
for (const link of document.querySelectorAll("#formats a")) {
  link.addEventListener("click", (event) => {
    if (!changed) return;
    event.preventDefault();
    say("Save first: the file has what is saved.");
  });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown !== null && drawCurve());
window.addEventListener("beforeunload", (event) => {
  if (changed) event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (shown === null || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input:not([type=checkbox]), select, textarea, dialog")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const onCut = event.target.closest("#cuts button") !== null;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
  const next = { n: 1, p: -1 }[key];
  if (next !== undefined && cuts.length) {
    const from = cuts.indexOf(chosen);
    choose(cuts[from < 0 ? (next > 0 ? 0 : cuts.length - 1) : Math.min(Math.max(from + next, 0), cuts.length - 1)], true);
    focusChosen();
  } else if (key === "Enter" && onCut) seek(chosen.time);
  else if (editable && step !== undefined && onCut) {
    place(chosen, chosen.time + step * frame() * (event.shiftKey ? 10 : 1));
    draw();
    focusChosen();
    seek(chosen.time);
  } else if (editable && (key === "Delete" || key === "Backspace") && onCut) remove();
  else if (key === "x" && event.target.closest("#list li")) event.target.closest("li").querySelector("input").click();
  else if (editable && key === "a") add();
  else if (editable && key === "s" && changed) store("PUT");
  else return;
  event.preventDefault();
});
window.addEventListener("resize", () => shown !== null && fitHandles());
begin();
