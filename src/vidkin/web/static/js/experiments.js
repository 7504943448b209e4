// Experiments: choose runs, see their curves in one picture and their figures side by side; running ones are followed.
import { api, byId, make } from "./base.js";

const list = byId("runs");
const chosen = new Set();
const curves = new Map();
let runs = [];
let drawn = "";

async function refresh() {
  runs = await api("/api/experiments");
  const state = JSON.stringify(runs.map((run) => [run.id, run.state]));
  if (state !== drawn) {
    drawn = state;
    const focused = document.activeElement?.value;
    list.replaceChildren(...(runs.length ? runs.map(entry) : [make("li", { class: "facts" }, "There are no runs below these folders yet.")]));
    list.querySelector(`input[value="${focused}"]`)?.focus();
  }
  await show();
  setTimeout(refresh, runs.some((run) => run.state === "running") ? 2000 : 15000);
}

function entry(run) {
  const box = make("input", { type: "checkbox", value: run.id, checked: chosen.has(run.id) });
  box.addEventListener("change", () => {
    if (box.checked) chosen.add(run.id);
    else chosen.delete(run.id);
    show();
  });
  const state = make("span", { class: run.state === "running" ? "good" : "facts" }, run.kind === "training" ? run.state : "benchmark");
  return make("li", {}, make("label", {}, box, make("span", {}, run.name), state));
}

async function show() {
  const picked = runs.filter((run) => chosen.has(run.id));
  const trainings = picked.filter((run) => run.kind === "training");
  for (const run of trainings) {
    const known = curves.get(run.id);
    if (known?.changed !== run.changed) curves.set(run.id, { changed: run.changed, ...(await api(`/api/experiments/${run.id}/curves`)) });
  }
  await showTables(picked.filter((run) => run.kind === "benchmark"));
  byId("compared").hidden = trainings.length === 0;
  if (trainings.length === 0) return;
  const names = [...new Set(trainings.flatMap((run) => Object.keys(curves.get(run.id).series)))].sort();
  const select = byId("series");
  if (names.join() !== [...select.options].map((option) => option.value).join()) {
    const before = select.value;
    select.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
    select.value = names.includes(before) ? before : names.includes("loss") ? "loss" : names[0];
  }
  plot(trainings);
  byId("legend").replaceChildren(...trainings.map((run, index) => make("li", { class: `run${index % 6}` }, `${run.name} (${run.state})`)));
  const head = make("tr", {}, make("th", {}, "last value"), ...trainings.map((run) => make("th", { class: "number" }, run.name)));
  const rows = names.map((name) => make("tr", {}, make("td", {}, name), ...trainings.map((run) => make("td", { class: "number" }, run.figures[name]?.toPrecision(4) ?? ""))));
  byId("figures").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
  const pictures = trainings.flatMap((run) => run.pictures.map((name) => [run, name]));
  if (byId("pictures").children.length !== pictures.length || pictures.some(([run], index) => byId("pictures").children[index].dataset.run !== run.id)) {
    byId("pictures").replaceChildren(...pictures.map(([run, name]) => make("figure", { "data-run": run.id },
      make("figcaption", {}, `${run.name}: ${name}`),
      make("img", { src: `/api/experiments/${run.id}/pictures/${encodeURIComponent(name)}`, alt: `${name} of ${run.name}`, loading: "lazy" }))));
  }
}

function plot(trainings) {
  const canvas = byId("plot");
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  // As many pixels as the screen has there, so that its words are as large as those of the page.
  const width = canvas.clientWidth;
  const height = Math.max(220, 0.35 * width);
  [canvas.width, canvas.height] = [width, height].map((side) => Math.round(side * devicePixelRatio));
  pen.scale(devicePixelRatio, devicePixelRatio);
  const lines = trainings.map((run) => curves.get(run.id).series[byId("series").value] ?? []);
  const points = lines.flat();
  if (points.length === 0) return;
  const [left, top, right, bottom] = [60, 12, width - 12, height - 28];
  const last = Math.max(...points.map((point) => point[0]), 1);
  const low = Math.min(...points.map((point) => point[1]));
  const high = Math.max(...points.map((point) => point[1]), low + 1e-9);
  const x = (step) => left + (step / last) * (right - left);
  const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
  pen.font = "14px system-ui, sans-serif";
  pen.fillStyle = style.getPropertyValue("--quiet");
  pen.strokeStyle = style.getPropertyValue("--line");
  for (let part = 0; part <= 4; part += 1) {
    const value = low + (part / 4) * (high - low);
    pen.beginPath();
    pen.moveTo(left, y(value));
    pen.lineTo(right, y(value));
    pen.stroke();
    pen.fillText(value.toPrecision(3), 4, y(value) + 5);
  }
  pen.fillText("step 0", left, height - 8);
  pen.fillText(String(last), right - pen.measureText(String(last)).width, height - 8);
  pen.lineWidth = 2;
  for (const [index, line] of lines.entries()) {
    pen.strokeStyle = pen.fillStyle = style.getPropertyValue(`--run${index % 6}`);
    pen.beginPath();
    for (const [step, value] of line) pen.lineTo(x(step), y(value));
    pen.stroke();
    if (line.length === 1) pen.fillRect(x(line[0][0]) - 4, y(line[0][1]) - 4, 8, 8);
  }
}

async function showTables(benchmarks) {
  const place = byId("tables");
  const wanted = benchmarks.map((run) => `${run.id}${run.changed}`).join();
  if (place.dataset.shown === wanted) return;
  place.dataset.shown = wanted;
  const panels = [];
  for (const run of benchmarks) {
    const tables = await api(`/api/experiments/${run.id}/tables`);
    panels.push(make("section", { class: "panel", "aria-label": run.name }, make("h2", {}, run.name), ...tables.map(table)));
  }
  place.replaceChildren(...panels);
}

function table({ title, columns, rows }) {
  const isNumber = columns.map((_, column) => rows.every((row) => row[column] === "" || !Number.isNaN(Number(row[column]))));
  const cells = (name, row) => make("tr", {}, ...row.map((cell, column) => make(name, { class: isNumber[column] && "number" }, cell)));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
    make("h3", {}, title),
    make("table", {}, make("thead", {}, cells("th", columns)), make("tbody", {}, ...rows.map((row) => cells("td", row)))));
}

byId("series")?.addEventListener("change", show);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
window.addEventListener("resize", show);
if (list !== null) refresh();
