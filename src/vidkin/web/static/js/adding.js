// Adding a folder to the index: live progress, what cannot be read and why, and a way to stop.
import { byId, make, onSubmit, post } from "./base.js";
import { Jobs } from "./jobs.js";

const form = byId("add");
const changed = () => document.dispatchEvent(new Event("index-changed"));

function showBroken(files) {
  byId("broken").hidden = files.length === 0;
  byId("broken").tBodies[0].replaceChildren(
    ...files.map(({ path, cause }) => make("tr", {}, make("td", {}, path), make("td", { class: "error" }, cause))),
  );
}

function tell(words) {
  byId("outcome").textContent = words;
  byId("outcome").hidden = words === "";
}

if (form !== null) {
  let shown = 0;
  const jobs = new Jobs(byId("progress"), {
    button: form.querySelector("[type=submit]"),
    quiet: true,
    onBegin: () => {
      byId("adding").open = true;
      shown = 0;
      tell("");
    },
    onState: ({ done, notes }) => {
      showBroken(notes.map((line) => ({ path: line, cause: "" })));
      // New videos appear while the rest is being read.
      if (done < shown + 10 && (done === 0 || shown > 0)) return;
      shown = done;
      changed();
    },
    onEnd: ({ state, result, seconds, error }) => {
      if (result) showBroken(result.files);
      tell({
        done: result && `${result.added} added, ${result.unchanged} unchanged, ${result.moved} moved, ${result.broken} cannot be read (${seconds.toFixed(0)} s).`,
        stopped: "Stopped. What was read is in the index; add the folder again to resume.",
      }[state] ?? error);
      changed();
    },
    onError: ({ message }) => tell(message),
  });
  onSubmit(form, ({ path, images }) => jobs.begin(() => post("/api/index", { paths: [path.value], images: images.checked || undefined })));
  // A page that is loaded while a folder is being added shows how far it is.
  jobs.join("index");
}
