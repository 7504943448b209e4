// Adding a folder to the index: live progress, what cannot be read and why, and a way to stop.
import { api, byId, make } from "./base.js";
import { Follower, followJob } from "./jobs.js";

const form = byId("add");
const outcome = byId("outcome");
const broken = byId("broken");
const jobs = new Follower(follow);
let shown = 0;

function showState(state) {
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
  byId("adding").open = true;
  shown = 0;
  outcome.hidden = true;
  try {
    const last = await followJob(job, byId("progress"), { button: form.querySelector("[type=submit]"), quiet: true, onState: showState });
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
  jobs.join("index");
}
