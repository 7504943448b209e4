// Shots: a timeline whose cuts are dragged, added and removed, beside a player.
import { SAME_TIME, api, arrowOf, ask, byId, clamp, clock, count, dragPointer, make, onClick, onKey, placeMoment, placeStretch, post, say, shareAt, warnUnsaved } from "./base.js";
import { Jobs } from "./jobs.js";
import { Player, playerKeys } from "./player.js";
import { filmstrip } from "./timeline.js";

const root = byId("shots");
const video = root.dataset.video;
const editable = root.dataset.editable !== "";
const timeline = byId("timeline");
const address = `/api/videos/${video}/shots`;
const player = new Player(JSON.parse(byId("player").dataset.source));
byId("player").append(player.element);
playerKeys(player.element, player, { wholePage: true });
const finding = byId("find");
const jobs = new Jobs(finding.querySelector("div"), {
  button: finding.querySelector("button"),
  onBegin: () => (finding.hidden = false),
  onEnd: ({ state }) => state === "done" && load(),
});
const clips = new Jobs(byId("making"));
let shown = null;
let cuts = [];
// Parts that a person marked as critical, each {start, end}; `begun` is where one begins that is marked by keys.
let marks = [];
let begun = null;
// Whether the click that follows ends such a drag, and neither seeks nor takes a mark away.
let dragged = false;
let chosen = null;
let changed = false;
// Steps that can be undone: the cuts and marks before each, and the cut that keys move in it, if any.
let steps = [];

/** The time at which a pointer is on the timeline. */
const timeAt = (event) => shareAt(event, timeline) * shown.duration;
const snap = (time) => Math.round(time / frame()) * frame();
const frame = () => 1 / shown.frame_rate;

async function load() {
  const list = await api(address);
  if (list === null) return void (finding.hidden = false);
  accept(list);
  setZoom(firstZoom());
  fitHandles();
}

/** Show a list of the server; `kept` are the steps that can still be undone. */
function accept(list, kept = []) {
  shown = list;
  steps = kept;
  cuts = list.cuts.map((cut) => ({ ...cut }));
  marks = list.critical.map(([start, end]) => ({ start, end }));
  begun = null;
  changed = false;
  chosen = null;
  finding.hidden = true;
  byId("editor").hidden = false;
  draw();
}

function draw() {
  const whose = changed ? "not saved yet" : shown.corrected ? "as you corrected them" : shown.detector === "default" ? "found by the default detector" : `found by detector ${shown.detector}`;
  const shots = shotsNow();
  // Fades at an end, and cuts to black before a fade from it, open no shot.
  const others = cuts.length - (shots.length - 1);
  const between = `${count(shots.length, "shot")}, ${count(shots.length - 1, "cut")} between them${others > 0 ? `, ${others} other transition${others === 1 ? "" : "s"}` : ""}`;
  byId("facts").textContent = `${cuts.length ? between : "One shot, no cut"} (${whose}), ${clock(shown.duration)}, ${Number(shown.frame_rate.toFixed(3))} frames a second`;
  byId("bands").replaceChildren(
    ...shots.map(({ start, end, critical }) => band(start, end, critical && "critical")),
    ...shown.black.map((one) => band(one.start, one.end, "black")),
    ...cuts.map(original).filter((one) => one && one.end > one.start).map((one) => band(one.start, one.end, `extent ${one.kind}`)),
    ...marks.map(markBand),
  );
  byId("cuts").replaceChildren(...cuts.map(handle));
  fitHandles();
  // Only what is there; the curve always is.
  const kinds = new Set([...cuts.map((cut) => cut.kind), byId("bands").querySelector(".critical") && "critical", shown.black.length && "black", shown.curve.length && "curve"]);
  for (const entry of document.querySelectorAll(".legend li")) entry.hidden = !kinds.has(entry.className);
  byId("list").replaceChildren(...shots.map(item));
  showPicked();
  if (editable) {
    byId("save").disabled = !changed;
    byId("reset").disabled = !changed && !shown.corrected;
    byId("remove").disabled = chosen === null;
    byId("undo").disabled = steps.length === 0;
    byId("mark").lastChild.textContent = begun === null ? " Critical from here" : " Critical up to here";
  }
  drawCurve();
}

const MOST_FRAMES = 160;
// Pixels: a handle with room, one that can still be hit, and how far the first zoom goes for it.
const [WIDE, HITTABLE, MOST_ZOOM] = [24, 8, 3];

/**
 * Where the handles are if the timeline has this many pixels, each {low, wide}. None lies over another one: a cut close
 * behind one in the upper half has its handle in the lower half, and each is as wide as the way to the next of its half
 * allows.
 */
function roomOfHandles(width) {
  const rooms = [];
  const last = { true: null, false: null }; // of each half, {x, room}
  let [before, low] = [-Infinity, true];
  for (const cut of cuts) {
    const x = (cut.time / shown.duration) * width;
    low = x - before < WIDE && !low;
    const room = { low, wide: WIDE };
    const other = last[low];
    if (other !== null) {
      room.wide = Math.min(WIDE, x - other.x);
      other.room.wide = Math.min(other.room.wide, room.wide);
    }
    last[low] = { x, room };
    before = x;
    rooms.push(room);
  }
  return rooms;
}

function fitHandles() {
  const rooms = roomOfHandles(timeline.getBoundingClientRect().width);
  byId("cuts").classList.toggle("halves", rooms.some((room) => room.low));
  for (const [index, button] of [...byId("cuts").children].entries()) {
    button.classList.toggle("low", rooms[index].low);
    button.style.setProperty("--wide", `${Math.max(rooms[index].wide, 3)}px`);
  }
}

/** The smallest zoom at which every handle can be hit; none where even the last of them would not do. */
function firstZoom() {
  setZoom(0);
  const { width } = timeline.getBoundingClientRect();
  for (let zoom = 0; zoom <= MOST_ZOOM; zoom += 0.5) {
    if (roomOfHandles(width * 2 ** zoom).every((room) => room.wide >= HITTABLE)) return zoom;
  }
  return 0;
}

function setZoom(zoom) {
  byId("zoom").value = zoom;
  timeline.style.width = `${100 * 2 ** zoom}%`;
  const frames = Math.min(10 * 2 ** Math.floor(zoom), MOST_FRAMES);
  const film = timeline.querySelector(".film");
  if (film?.children.length === frames) return;
  film?.remove();
  byId("bands").after(filmstrip(player.source, 0, shown.duration, frames));
}

function band(start, end, kind) {
  return placeStretch(make("span", { class: kind }), start, end, shown.duration);
}

/** A part that is marked as critical: a click or Enter takes the mark away. */
function markBand(mark) {
  const words = `critical from ${clock(mark.start)} to ${clock(mark.end)}`;
  const names = editable ? { title: `${words}: click to remove`, "aria-label": `Remove mark: ${words}` } : { title: words, "aria-label": words };
  const button = make("button", { type: "button", class: "critical mark", ...names, onclick: () => editable && !dragged && unmark(mark) });
  return placeStretch(button, mark.start, mark.end, shown.duration);
}

/** Keep what is shown, before it changes; a cut that keys move frame by frame is one step. */
function keep(moving = null) {
  if (moving !== null && steps.at(-1)?.moving === moving) return;
  steps.push({ cuts: cuts.map((cut) => ({ ...cut })), marks, changed, moving });
  changed = true;
}

function undo() {
  ({ cuts, marks, changed } = steps.pop());
  chosen = begun = null;
  draw();
}

function unmark(mark) {
  keep();
  marks = marks.filter((one) => one !== mark);
  draw();
}

/** Mark a part as critical, to whole frames; parts that touch become one. */
function markCritical(one, other) {
  const [start, end] = [one, other].sort((a, b) => a - b).map((time) => clamp(snap(time), 0, shown.duration));
  const part = { start, end };
  if (part.end - part.start < frame() / 2) return;
  const touching = marks.filter((mark) => mark.start <= part.end + SAME_TIME && mark.end >= part.start - SAME_TIME);
  part.start = Math.min(part.start, ...touching.map((mark) => mark.start));
  part.end = Math.max(part.end, ...touching.map((mark) => mark.end));
  keep();
  marks = [...marks.filter((mark) => !touching.includes(mark)), part].sort((a, b) => a.start - b.start);
  draw();
}

/** Without a mouse: the first press begins a critical part at the player's time, the second one ends it. */
function markHere() {
  if (begun === null) {
    begun = player.time;
    say("Go to its end, and press it again.");
    draw();
  } else {
    const from = begun;
    begun = null;
    draw();
    markCritical(from, player.time + frame());
  }
}

/** Dragging over the lower part of the timeline, beside cuts, marks what is dragged over as critical. */
function dragMark(event) {
  dragged = false;
  if (!editable || shown === null || event.button !== 0 || event.pointerType === "touch") return;
  if (event.target.closest("#cuts button") || event.clientY < byId("bands").getBoundingClientRect().top) return;
  let ghost = null;
  const move = (step) => {
    ghost ??= byId("bands").appendChild(make("span", { class: "critical" }));
    const [start, end] = [timeAt(event), timeAt(step)].sort((a, b) => a - b);
    placeStretch(ghost, start, end, shown.duration);
  };
  const end = (up, moved) => {
    ghost?.remove();
    dragged = ghost !== null;
    if (moved) markCritical(timeAt(event), timeAt(up));
  };
  dragPointer(event, window, { move, end, least: 3 });
}

/** The cut that the server gave, as long as nobody moved it. */
const original = (cut) => shown.cuts.find((one) => one.kind === cut.kind && Math.abs(one.time - cut.time) < frame() / 2);

/** A fade from the first frame on, or up to the last one, is a cut but opens no shot: the server knows which do. */
function divides(cut) {
  const one = original(cut);
  return one === undefined || shown.shots.some((shot) => shot.start_frame === one.frame);
}

/**
 * The shots as the page shows them, each {start, end, kind, critical, opening}: those of the server, which clips are
 * made of; while cuts are changed and not saved, those between the cuts that are shown. `opening` is the transition
 * that opens it, {start, end, confidence}, as far as it is known.
 */
function shotsNow() {
  if (!changed) {
    return shown.shots.map((shot) => ({
      start: shot.start, end: shot.end, kind: shot.kind, critical: shot.is_critical,
      opening: { start: shot.transition_start, end: shot.transition_end, confidence: shot.kind_confidence },
    }));
  }
  const dividing = cuts.filter(divides);
  const edges = [0, ...dividing.map((cut) => cut.time), shown.duration];
  return edges.slice(1).map((end, index) => {
    const cut = index ? dividing[index - 1] : cuts.find((each) => !divides(each) && original(each).start_frame === 0);
    const one = cut && original(cut);
    return {
      start: edges[index], end, kind: cut?.kind ?? "start", critical: isCritical(edges[index], end),
      opening: one ? { start: one.start, end: one.end, confidence: one.kind_confidence } : null,
    };
  });
}

function isCritical(start, end) {
  return shown.shots.some((shot) => shot.is_critical && shot.end > start + SAME_TIME && shot.end <= end + frame());
}

function handle(cut) {
  const name = `${cut.kind} cut at ${clock(cut.time)}`;
  const button = make("button", {
    type: "button", class: cut.kind, title: name, "aria-label": name, "aria-current": cut === chosen && "true",
    onclick: () => choose(cut, true),
    onfocus: () => chosen !== cut && choose(cut, false),
    onpointerdown: (event) => editable && drag(event, cut),
  });
  placeMoment(button, cut.time, shown.duration);
  return button;
}

function item({ start, end, kind, critical, opening }, index) {
  // The server knows what is seen of its own shots; of others it is their middle.
  const known = shown.shots.find((shot) => Math.abs(shot.start - start) < SAME_TIME && Math.abs(shot.end - end) < SAME_TIME);
  const address = known?.thumbnail ?? shown.shots[0].thumbnail.replace(/time=[\d.]+/, `time=${((start + end) / 2).toFixed(2)}`);
  const words = [kind];
  // Of a cut between two frames there is no more to say than where it is.
  if (opening && opening.end - opening.start > 1.5 * frame()) words[0] += ` from ${clock(opening.start)} to ${clock(opening.end)}`;
  if (opening && kind !== "start" && opening.confidence < 0.95) words.push(`kind ${Math.round(100 * opening.confidence)} % certain`);
  if (critical) words.push("critical");
  const card = make("button", { type: "button", onclick: () => seek(start) },
    make("span", { class: "picture" }, make("img", { alt: "", loading: "lazy", width: 240, height: 135, src: address })),
    make("span", { class: "name" }, `${index + 1}: ${clock(start)} - ${clock(end)}`),
    make("span", { class: "facts" }, words.join(", ")));
  const box = make("input", { type: "checkbox", "aria-label": `Select shot ${index + 1}`, "aria-keyshortcuts": "X" });
  return make("li", { class: critical ? "card critical" : "card", "data-keys": true }, card, make("label", { class: "pick-shot" }, box, " select"));
}

// Shots that are selected for a clip, by number from 1.

const boxes = () => [...byId("list").querySelectorAll("input")];
const picked = () => boxes().flatMap((box, index) => (box.checked ? [index + 1] : []));

function showPicked() {
  const { length } = picked();
  byId("picked").textContent = length ? `${count(length, "shot")} selected` : "Select shots to make a clip of them.";
  byId("pick-all").textContent = length ? "Select none" : "Select all";
  byId("join").disabled = length === 0;
  byId("clip").hidden = true;
}

function pickAll() {
  const on = picked().length === 0;
  for (const box of boxes()) box.checked = on;
  showPicked();
}

/** Write the selected shots, as one clip or into a folder; resolves with the result of the job. */
async function makeClips(folder) {
  if (changed) return say("Save first: clips have the cuts that are saved.");
  const ended = await clips.begin(() => post(`/api/videos/${video}/clips`, { shots: picked(), folder }));
  return ended?.state === "done" ? ended.result : null;
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
  if ((await ask(dialog)) !== "split") return;
  const made = await makeClips(dialog.querySelector("input").value);
  if (made) say(`${count(made.files, "file")} in ${made.folder}.`, { seconds: 12 });
}

// What is at a moment of the timeline is shown above it.
function peek(event) {
  const box = timeline.getBoundingClientRect();
  const time = timeAt(event);
  const panel = byId("peek");
  const half = 80;
  panel.hidden = false;
  panel.style.left = `${clamp(event.clientX - box.left, half, box.width - half)}px`;
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

/** A moment at which a cut can be. */
const bounded = (time) => clamp(time, frame(), shown.duration - frame());

function place(cut, time) {
  const from = cut.moved_from ?? cut.time;
  cut.time = bounded(snap(time));
  // The server knows where its own cuts were; a new one was nowhere.
  if (cut.moved_from !== undefined) cut.moved_from = Math.abs(cut.time - from) < frame() / 2 ? null : from;
  cuts.sort((one, other) => one.time - other.time);
}

/** Choose a cut after a step that moved, added or removed one. */
function chooseAnew(cut) {
  chosen = cut;
  draw();
  focusChosen();
}

function drag(event, cut) {
  if (event.button !== 0) return;
  const button = event.target;
  const move = (step) => {
    const time = timeAt(step);
    placeMoment(button, bounded(time), shown.duration);
    seek(time);
  };
  const end = (up, moved) => {
    if (!moved) return;
    keep();
    place(cut, timeAt(up));
    chooseAnew(cut);
  };
  dragPointer(event, button, { move, end, least: 3 });
}

function add() {
  const cut = { time: 0, kind: byId("kind").value, confidence: 1 };
  const time = Math.floor((player.time + SAME_TIME) / frame()) * frame();
  if (cuts.some((other) => Math.abs(other.time - time) < frame() / 2)) return say("There is a cut here already.");
  keep();
  cuts.push(cut);
  place(cut, time);
  chooseAnew(cut);
}

function remove() {
  const index = cuts.indexOf(chosen);
  keep();
  cuts.splice(index, 1);
  chooseAnew(cuts[Math.min(index, cuts.length - 1)] ?? null);
}

async function store(method) {
  const body = method === "PUT" ? { cuts: cuts.map(({ time, kind, moved_from = null }) => ({ time, kind, moved_from })), critical: marks.map(({ start, end }) => [start, end]) } : undefined;
  accept(await api(address, { method, body }), method === "PUT" ? steps.map((step) => ({ ...step, changed: true, moving: null })) : []);
  say(method === "PUT" ? "Saved." : "These are the cuts that were detected.");
}

/** Show the shots; a page that is opened while they are being found shows how far that is. */
async function begin() {
  if ((await jobs.join("shots", (job) => job.video === Number(video))) === null) await load();
  const time = Number(new URLSearchParams(location.search).get("time") ?? NaN);
  if (shown !== null && time >= 0) seek(Math.min(time, shown.duration - frame()));
}

onClick({
  "#find button": () => jobs.begin(() => post(address)),
  "#pick-all": pickAll,
  "#join": join,
  "#split": split,
  "#add": add,
  "#remove": remove,
  "#undo": undo,
  "#mark": markHere,
  "#save": () => store("PUT"),
  "#reset": () => (shown.corrected ? store("DELETE") : accept(shown)),
  "#export a": (_, event) => {
    if (!changed) return;
    event.preventDefault();
    say("Save first: the file has what is saved.");
  },
});
byId("list").addEventListener("change", showPicked);
timeline.addEventListener("click", (event) => {
  if (!dragged && !event.target.closest("button")) seek(timeAt(event));
});
timeline.addEventListener("pointerdown", dragMark);
timeline.addEventListener("pointermove", (event) => shown !== null && event.pointerType === "mouse" && peek(event));
timeline.addEventListener("pointerleave", () => (byId("peek").hidden = true));
player.addEventListener("time", () => shown !== null && placeMoment(byId("now"), Math.min(player.time, shown.duration), shown.duration));
byId("zoom").addEventListener("input", (event) => {
  setZoom(Number(event.target.value));
  fitHandles();
  byId("now").scrollIntoView({ inline: "center", block: "nearest" });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown !== null && drawCurve());
warnUnsaved(() => changed);
onKey((key, event) => {
  if (shown === null) return false;
  const onCut = event.target.closest("#cuts button") !== null;
  const [step] = arrowOf(key);
  const next = { n: 1, p: -1 }[key];
  if (next !== undefined && cuts.length) {
    const from = cuts.indexOf(chosen);
    choose(cuts[from < 0 ? (next > 0 ? 0 : cuts.length - 1) : clamp(from + next, 0, cuts.length - 1)], true);
    focusChosen();
  } else if (key === "Enter" && onCut) seek(chosen.time);
  else if (editable && step && onCut) {
    keep(chosen);
    place(chosen, chosen.time + step * frame() * (event.shiftKey ? 10 : 1));
    chooseAnew(chosen);
    seek(chosen.time);
  } else if (editable && (key === "Delete" || key === "Backspace") && onCut) remove();
  else return false;
});
window.addEventListener("resize", () => shown !== null && fitHandles());
begin();
