// Duplicates: look for groups, and verdicts on them by mouse and by key.
import { api, runningJob, say, showProgress, watchJob } from "./base.js";

const form = document.getElementById("wish");
const progress = document.getElementById("progress");
let running = null;

function wish() {
  const values = form.elements;
  return { threshold: Number(values.threshold.value), parts: values.parts.checked, rule: values.rule.value };
}

/** Replace the groups by what the server has now. */
async function reload() {
  const answer = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.getElementById("groups").replaceWith(page.getElementById("groups"));
}

async function find() {
  if (running !== null) return;
  try {
    await follow(await api("/api/duplicates", { method: "POST", body: wish() }));
  } catch (error) {
    say(error.message);
  }
}

async function follow(job) {
  running = job;
  progress.hidden = false;
  try {
    const ended = await watchJob(job.id, (state) => showProgress(progress, state));
    if (ended.state === "failed") say(ended.error);
    if (ended.state === "stopped") say("Stopped; what was compared is kept.");
    await reload();
  } catch (error) {
    say(error.message);
  } finally {
    running = null;
    progress.hidden = true;
  }
}

async function decide(member, verdict) {
  const first = Number(member.dataset.id);
  try {
    if (verdict === "keep") {
      const others = [...member.closest(".members").querySelectorAll(".member")].map((other) => other.dataset.id);
      const instead = others.filter((id) => id !== "" && Number(id) !== first).map(Number);
      await api("/api/duplicates/keep", { method: "POST", body: { video: first, instead_of: instead } });
      mark(member, "keep (your choice)");
    } else {
      const body = { first, second: Number(member.dataset.other), verdict };
      await api("/api/duplicates/verdict", { method: "POST", body });
      mark(member, verdict === "match" ? "copy (you confirmed it)" : "not a match (your verdict)");
    }
  } catch (error) {
    say(error.message);
  }
}

/** Show a verdict that is stored. The groups follow when they are found again: that may take long, and verdicts come fast. */
function mark(member, words) {
  const line = member.querySelector(".verdict");
  line.textContent = words;
  line.className = "verdict good";
  document.getElementById("outdated").hidden = false;
  document.getElementById("plans").hidden = true;
  say(`Remembered: ${words}.`);
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  find();
});
form?.elements.threshold.addEventListener("input", (event) => {
  event.target.parentElement.firstChild.textContent = `Score of ${Number(event.target.value).toFixed(2)} or more `;
});
document.getElementById("stop")?.addEventListener("click", () => {
  if (running !== null) api(`/api/jobs/${running.id}/stop`, { method: "POST" }).catch((error) => say(error.message));
});
document.addEventListener("click", (event) => {
  const button = event.target.closest(".member button, .again");
  if (button === null) return;
  if (button.classList.contains("again")) find();
  else decide(button.closest(".member"), button.dataset.verdict ?? "keep");
});
document.addEventListener("keydown", (event) => {
  const member = event.target.closest?.(".member");
  if (!member || event.altKey || event.ctrlKey || event.metaKey) return;
  const all = [...document.querySelectorAll(".member")];
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (step !== undefined) {
    event.preventDefault();
    all[all.indexOf(member) + step]?.focus();
    return;
  }
  const wanted = { c: '[data-verdict="match"]', n: '[data-verdict="not a match"]', k: "[data-keep]" }[event.key.toLowerCase()];
  const button = wanted && member.querySelector(wanted);
  if (button) {
    event.preventDefault();
    button.click();
  }
});
// A page that is opened while duplicates are being looked for shows how far that is.
if (form !== null) {
  const job = await runningJob("duplicates");
  if (job !== undefined && running === null) follow(job);
}
