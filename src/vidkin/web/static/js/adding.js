// Adding a folder to the index: live progress, what cannot be read and why, and a way to stop.
import { Follower, api, make, say, showProgress, watchJob } from "./base.js";

const form = document.getElementById("add");
const panel = document.getElementById("progress");
const outcome = document.getElementById("outcome");
const broken = document.getElementById("broken");
const stop = document.getElementById("stop");
const jobs = new Follower(follow);
let shown = 0;

function showState(state) {
  showProgress(panel, state);
  showBroken(state.notes.map((line) => ({ path: line, cause: "" })));
  // New videos appear while the rest is being read.
  if (state.done >= shown + 10 || (state.done && !shown)) {
    shown = state.done;
    document.dispatchEvent(new Event("index-changed"));
  }
}

function showBroken(files) {
  broken.hidden = files.length === 0;
  broken.tBodies[0].replaceChildren(
    ...files.map(({ path, cause }) => make("tr", {}, make("td", {}, path), make("td", { class: "error" }, cause))),
  );
}

async function follow(job) {
  document.getElementById("adding").open = true;
  shown = 0;
  panel.hidden = stop.hidden = false;
  outcome.hidden = true;
  form.querySelector("[type=submit]").disabled = true;
  stop.onclick = () => api(`/api/jobs/${job.id}/stop`, { method: "POST" }).catch((error) => say(error.message));
  try {
    const last = await watchJob(job.id, showState);
    const found = last.result;
    outcome.textContent = {
      done: found && `${found.added} added, ${found.unchanged} unchanged, ${found.moved} moved, ${found.broken} cannot be read (${last.seconds.toFixed(0)} s).`,
      stopped: "Stopped. What was read is in the index; add the folder again to resume.",
    }[last.state] ?? last.error;
    if (found) showBroken(found.files);
  } catch (error) {
    outcome.textContent = error.message;
  }
  outcome.hidden = false;
  panel.hidden = stop.hidden = true;
  form.querySelector("[type=submit]").disabled = false;
  document.dispatchEvent(new Event("index-changed"));
}

if (form !== null) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const images = form.elements.images.checked ? true : undefined;
    await jobs.begin(() => api("/api/index", { method: "POST", body: { paths: [form.elements.path.value], images } }).catch((error) => {
      outcome.textContent = error.message;
      outcome.hidden = false;
      return null;
    }));
  });
  // A page that is loaded while a folder is being added shows how far it is.
  jobs.join("index").catch((error) => say(error.message));
}
