// The map of the collection: points on a canvas with zoom, colors and a lasso; clusters with their posters.
import { api, arrowOf, byId, clamp, clock, make, onClick, onKey, post, say } from "./base.js";
import { Jobs } from "./jobs.js";

// Each scheme has colors as far apart as they can be for people who see red and green alike, 3:1 or more on the
// background; six colors in four shapes are as many groups as there are clusters.
const COLORS = {
  light: ["#6289ff", "#000062", "#eb6200", "#622700", "#0000eb", "#b13b76"],
  dark: ["#76b1eb", "#b14e62", "#ffff27", "#3b62eb", "#d89d00", "#9dffff"],
};
const OTHERS = "#7d858f";
const SHAPES = {
  square: [[0, 0], [1, 0], [1, 1], [0, 1]],
  triangle: [[0.5, -0.1], [1.1, 1], [-0.1, 1]],
  diamond: [[0.5, -0.2], [1.2, 0.5], [0.5, 1.2], [-0.2, 0.5]],
  cross: [[0.3, -0.1], [0.7, -0.1], [0.7, 0.3], [1.1, 0.3], [1.1, 0.7], [0.7, 0.7], [0.7, 1.1], [0.3, 1.1], [0.3, 0.7], [-0.1, 0.7], [-0.1, 0.3], [0.3, 0.3]],
};
const isDark = matchMedia("(prefers-color-scheme: dark)");
// Points of at least this many pixels have a shape; of at most this many in sight, each that has room shows a frame.
const [LEAST_SHAPE, MOST_FRAMES] = [4, 80];
const [FRAME_WIDTH, FRAME_HEIGHT] = [72, 42];
const MOST_POSTERS = 12;
const canvas = byId("points");
const pen = canvas?.getContext("2d");
const finding = byId("find");
const of = finding?.dataset.of;
const TITLE = of === "shots" ? "Map of the shots" : "Map of the collection";
const counted = (count) => `${count} ${count === 1 ? of.slice(0, -1) : of}`;
let map = null;
let lists = [];
let view = { x: 0.5, y: 0.5, scale: 0.92 }; // the middle of what is shown, and canvas widths per map width
let selected = new Set(); // positions in the map
let groups = []; // {name, positions, color, shape}
let groupAt = []; // the group of each position
let lasso = null;
let asked = 0;

const size = () => Math.min(canvas.clientWidth, canvas.clientHeight) * view.scale;
/** Pixels of the map's width, and where its left and its top are on the canvas. To be had once for many points: it asks for the layout. */
const frameOfMap = () => [size(), canvas.clientWidth / 2 - view.x * size(), canvas.clientHeight / 2 - view.y * size()];
const toMap = (x, y) => [(x - canvas.clientWidth / 2) / size() + view.x, (y - canvas.clientHeight / 2) / size() + view.y];

function group() {
  const by = byId("color").value;
  const positions = new Map();
  const add = (key, position) => (positions.get(key) ?? positions.set(key, []).get(key)).push(position);
  if (by === "cluster" || by === "folder") {
    for (const [position, key] of map[by].entries()) add(key, position);
  } else {
    const listed = new Set(lists.find((list) => list.name === by)?.videos);
    for (const [position, video] of map.videos.entries()) add(listed.has(video) ? 0 : -1, position);
  }
  const name = (key) => (key < 0 ? "others" : by === "cluster" ? `cluster ${key + 1}` : by === "folder" ? map.folders[key] : by);
  groups = [...positions].sort(([one], [other]) => (one < 0) - (other < 0) || one - other).map(([key, held]) => ({ name: name(key), positions: held, ...lookOf(key) }));
  for (const one of groups) for (const position of one.positions) groupAt[position] = one;
  byId("legend").replaceChildren(...groups.slice(0, 24).map((one) => make("li", {}, swatch(one), `${one.name} (${one.positions.length})`)));
}

/** Color and shape of a group by its number; -1 is what is in none. */
function lookOf(key) {
  const palette = COLORS[isDark.matches ? "dark" : "light"];
  const shapes = Object.keys(SHAPES);
  return key < 0 ? { color: OTHERS, shape: shapes[0] } : { color: palette[key % palette.length], shape: shapes[Math.floor(key / palette.length) % shapes.length] };
}

const swatch = ({ color, shape }) => make("svg", { viewBox: "-.25 -.25 1.5 1.5", "aria-hidden": "true" }, make("polygon", { points: SHAPES[shape].join(" "), fill: color }));

let drawing = 0;
function draw() {
  drawing ||= requestAnimationFrame(() => {
    drawing = 0;
    paint();
  });
}

function paint() {
  const began = performance.now();
  const ratio = devicePixelRatio;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const pixels = [width, height].map((side) => Math.round(side * ratio));
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const side = clamp(120 / Math.sqrt(map.videos.length) + view.scale, 2, 14);
  const [wide, left, top] = frameOfMap();
  const visible = [];
  for (const { color, shape, positions } of groups) {
    pen.fillStyle = color;
    pen.globalAlpha = selected.size ? 0.35 : 0.85;
    for (const position of positions) {
      const [x, y] = [map.x[position] * wide + left, map.y[position] * wide + top];
      if (x < -side || y < -side || x > width + side || y > height + side) continue;
      if (visible.length <= MOST_FRAMES) visible.push({ position, x, y, color, shape });
      fillShape(shape, x, y, side);
    }
  }
  if (visible.length <= MOST_FRAMES) paintFrames(visible, side);
  pen.globalAlpha = 1;
  pen.strokeStyle = getComputedStyle(document.body).color;
  pen.lineWidth = 1.5;
  for (const position of selected) {
    const [x, y] = [map.x[position] * wide + left, map.y[position] * wide + top];
    const { color, shape } = groupAt[position];
    pen.fillStyle = color;
    fillShape(shape, x, y, side);
    if (selected.size < 2000) pen.strokeRect(x - side / 2 - 1, y - side / 2 - 1, side + 2, side + 2);
  }
  if (lasso?.length > 1) {
    pen.setLineDash([5, 4]);
    pen.beginPath();
    for (const point of lasso) pen.lineTo(...point);
    pen.closePath();
    pen.stroke();
    pen.setLineDash([]);
  }
  canvas.dataset.took = (performance.now() - began).toFixed(1);
}

function fillShape(shape, x, y, side) {
  if (side < LEAST_SHAPE) return pen.fillRect(x - side / 2, y - side / 2, side, side);
  pen.beginPath();
  for (const [right, down] of SHAPES[shape]) pen.lineTo(x + (right - 0.5) * side, y + (down - 0.5) * side);
  pen.fill();
}

/** Of the points in sight, those with room show what the video looks like, with the mark of their group in a corner. */
function paintFrames(points, side) {
  const taken = [];
  for (const { position, x, y, color, shape } of points) {
    if (taken.some((other) => Math.abs(other.x - x) < FRAME_WIDTH && Math.abs(other.y - y) < FRAME_HEIGHT)) continue;
    taken.push({ x, y });
    const picture = frameOf(position);
    if (!picture.complete || picture.naturalWidth === 0) continue;
    const shrink = Math.min(FRAME_WIDTH / picture.naturalWidth, FRAME_HEIGHT / picture.naturalHeight) * 0.94;
    const [wide, high] = [picture.naturalWidth * shrink, picture.naturalHeight * shrink];
    pen.globalAlpha = selected.size && !selected.has(position) ? 0.35 : 1;
    pen.drawImage(picture, x - wide / 2, y - high / 2, wide, high);
    pen.fillStyle = pen.strokeStyle = color;
    pen.lineWidth = 2;
    pen.strokeRect(x - wide / 2, y - high / 2, wide, high);
    fillShape(shape, x - wide / 2 + side / 2, y - high / 2 + side / 2, side);
  }
}

const frames = new Map(); // images by address
function frameOf(position) {
  const address = pictureOf(position);
  if (!frames.has(address)) frames.set(address, make("img", { src: address, alt: "", onload: draw }));
  return frames.get(address);
}

function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const before = toMap(x, y);
  view.scale = clamp(view.scale * factor, 0.5, 400);
  const after = toMap(x, y);
  view.x += before[0] - after[0];
  view.y += before[1] - after[1];
  draw();
}

function showAll() {
  view = { x: 0.5, y: 0.5, scale: 0.92 };
  draw();
}

/** The point nearest to a place of the canvas, at most some pixels away; -1 for none. */
function nearest(x, y, within = 12) {
  let [best, distance] = [-1, within ** 2];
  const [wide, left, top] = frameOfMap();
  for (let position = 0; position < map.videos.length; position += 1) {
    const away = (map.x[position] * wide + left - x) ** 2 + (map.y[position] * wide + top - y) ** 2;
    if (away < distance) [best, distance] = [position, away];
  }
  return best;
}

/** Whether a place is inside of a line that is closed: how often a ray from it crosses the line. */
function inside([x, y], line) {
  let within = false;
  for (let index = 0, last = line.length - 1; index < line.length; last = index, index += 1) {
    const [[ax, ay], [bx, by]] = [line[index], line[last]];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) within = !within;
  }
  return within;
}

function select(positions) {
  selected = new Set(positions);
  byId("chosen").hidden = selected.size === 0;
  byId("chosen-title").textContent = counted(selected.size);
  byId("chosen").querySelector("ul").replaceChildren(...[...selected].slice(0, MOST_POSTERS).map(poster));
  draw();
}

const isShot = () => map.starts.length > 0;
const addressOf = (position) => `/videos/${map.videos[position]}${isShot() ? `/shots?time=${map.starts[position].toFixed(2)}` : ""}`;
const pictureOf = (position) => `/videos/${map.videos[position]}/thumbnail${isShot() ? `?time=${((map.starts[position] + map.ends[position]) / 2).toFixed(1)}` : ""}`;
const timesOf = (position) => (isShot() ? `${clock(map.starts[position])} - ${clock(map.ends[position])}` : "");
const poster = (position) =>
  make("li", {}, make("a", { href: addressOf(position), "aria-label": `Video ${map.videos[position]}${isShot() ? `, shot ${timesOf(position)}` : ""}` }, make("span", { class: "picture" }, make("img", { src: pictureOf(position), alt: "", loading: "lazy", width: 160, height: 90 }))));

function showClusters() {
  const members = map.central.map(() => []);
  for (const [position, number] of map.cluster.entries()) members[number]?.push(position);
  byId("clusters").replaceChildren(...map.central.flatMap((typical, number) => members[number].length === 0 ? [] : [
    make("li", {},
      make("div", { class: "head-line" }, make("strong", {}, swatch(lookOf(number)), `Cluster ${number + 1}: ${counted(members[number].length)}`),
        make("button", { type: "button", class: "small", "aria-label": `Select cluster ${number + 1}`, onclick: () => select(members[number]) }, "Select")),
      make("ul", { class: "row" }, ...typical.slice(0, 6).map(poster))),
  ]));
}

async function load() {
  const found = await api(`/api/map?of=${of}`);
  finding.hidden = found !== null && found.is_current;
  if (of === "shots" && !found?.is_current) await countShots();
  if (found === null) return;
  if (!found.is_current) {
    byId("why").textContent = `The ${of === "shots" ? "index or its shots" : "index"} changed since this map was computed.`;
    finding.querySelector("button").textContent = "Compute it again";
  }
  map = found;
  lists = await api("/api/lists");
  const choice = byId("color");
  for (const old of choice.querySelectorAll(".list")) old.remove();
  choice.append(...lists.map(({ name }) => make("option", { value: name, class: "list" }, `list ${name}`)));
  byId("map-page").hidden = false;
  const drawn = map.total > map.videos.length ? ` of ${map.total}, drawn by chance` : "";
  byId("facts").textContent = `${counted(map.videos.length)}${drawn}, ${METHODS[map.method] ?? map.method}`;
  group();
  showClusters();
  select([]);
}

const METHODS = { tsne: "by t-SNE: neighbors are similar", umap: "by UMAP: neighbors are similar", pacmap: "by PaCMAP: neighbors are similar", pca: "by PCA: the two directions in which they differ most" };

/** Says of how many videos the shots are known, and offers to find the others. */
async function countShots() {
  const { known, unknown } = await api("/api/map/shots");
  const all = known + unknown;
  byId("known").textContent = unknown ? `The shots of ${known} of ${all} ${all === 1 ? "video" : "videos"} are known.` : `The shots of all ${all} videos are known.`;
  byId("find-shots").hidden = unknown === 0;
}

// What is under the mouse.
async function point(event) {
  const tip = byId("tip");
  const found = nearest(event.offsetX, event.offsetY);
  const turn = (asked += 1);
  tip.hidden = found < 0;
  if (found < 0) return;
  const [wide, left, top] = frameOfMap();
  const [x, y] = [map.x[found] * wide + left, map.y[found] * wide + top];
  tip.style.left = `${clamp(x - 80, 0, canvas.clientWidth - 160)}px`;
  tip.style.top = `${y > 130 ? y - 125 : y + 12}px`;
  if (tip.dataset.shown === String(found)) return;
  tip.dataset.shown = found;
  tip.querySelector("span").textContent = timesOf(found);
  tip.querySelector("img").src = pictureOf(found);
  const record = await api(`/api/videos/${map.videos[found]}`).catch(() => null);
  if (turn === asked && record !== null) tip.querySelector("span").textContent = [record.name, timesOf(found)].filter(Boolean).join(", ");
}

function listen() {
  const pointers = new Map();
  let from = null;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    from = { x: event.offsetX, y: event.offsetY, view: { ...view }, moved: false };
    lasso = event.shiftKey || byId("lasso").getAttribute("aria-pressed") === "true" ? [[event.offsetX, event.offsetY]] : null;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType === "mouse") point(event);
      return;
    }
    byId("tip").hidden = true;
    const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    from.moved ||= Math.hypot(event.offsetX - from.x, event.offsetY - from.y) > 3;
    if (others.length) {
      const away = (place) => Math.max(Math.hypot(place[0] - others[0][0], place[1] - others[0][1]), 1);
      zoom(away([event.offsetX, event.offsetY]) / away(before), others[0][0], others[0][1]);
    } else if (lasso) lasso.push([event.offsetX, event.offsetY]);
    else {
      view.x -= (event.offsetX - before[0]) / size();
      view.y -= (event.offsetY - before[1]) / size();
    }
    draw();
  });
  const end = (event) => {
    if (!pointers.delete(event.pointerId) || event.type === "pointercancel") return (lasso = null);
    if (lasso?.length > 2) {
      // In places of the map: to find the places on the screen of all points asks for the layout as often.
      const line = lasso.map(([x, y]) => toMap(x, y));
      lasso = null;
      select([...map.videos.keys()].filter((position) => inside([map.x[position], map.y[position]], line)));
    } else if (!from.moved) {
      const found = nearest(event.offsetX, event.offsetY);
      if (found >= 0 && !lasso) location.href = addressOf(found);
    }
    lasso = null;
    draw();
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => (byId("tip").hidden = true));
  byId("color").addEventListener("change", () => (group(), draw()));
  new ResizeObserver(() => map !== null && draw()).observe(canvas);
  isDark.addEventListener("change", () => {
    if (map === null) return;
    group();
    showClusters();
    draw();
  });
}

function toggleLasso() {
  const button = byId("lasso");
  const on = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", String(on));
  canvas.classList.toggle("lasso", on);
}

function move(key) {
  const [right, down] = arrowOf(key);
  if (!right && !down) return false;
  view.x += (40 * right) / size();
  view.y += (40 * down) / size();
  draw();
}

if (canvas !== null) {
  onKey(move, canvas);
  const jobs = new Jobs(finding.querySelector(".work"), {
    button: finding.querySelector("button"),
    onBegin: () => (finding.hidden = false),
    onEnd: async ({ state, notes }) => {
      for (const line of notes) say(line, { seconds: 12 });
      if (state === "done") await load();
    },
  });
  onClick({
    "#find button": () => jobs.begin(() => post("/api/map", { of, find_shots: byId("find-shots")?.querySelector("input").checked ?? true })),
    "#closer": () => zoom(1.5),
    "#farther": () => zoom(1 / 1.5),
    "#all": showAll,
    "#none": () => select([]),
    "#lasso": toggleLasso,
    "#to-list": async () => {
      const name = byId("list-name").value.trim();
      await post("/api/lists", { name, add: [...new Set([...selected].map((position) => map.videos[position]))] });
      say(`Added to "${name}"; the library shows it.`);
    },
  });
  listen();
  if ((await jobs.join("map", (job) => job.title === TITLE)) === null) await load();
}
