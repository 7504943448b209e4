// Choosing a folder of the server's computer.
import { api, ask, byId, make } from "./base.js";

const dialog = byId("picker");
const field = document.querySelector("#add [name=path]");
let shown = "";

async function show(path) {
  const found = await api(`/api/computer/folders?${new URLSearchParams({ path })}`);
  shown = found.path;
  byId("picker-path").textContent = found.path || "Folders of the computer that serves this page";
  const row = (label, target) => make("li", {}, make("button", { type: "button", onclick: () => show(target) }, label));
  const rows = found.folders.map(([name, target]) => row(name, target));
  if (found.parent !== null) rows.unshift(row("Up", found.parent));
  if (!found.complete) rows.push(make("li", { class: "facts" }, "There are more; type the path instead."));
  if (!rows.length) rows.push(make("li", { class: "facts" }, "There are no folders in it."));
  byId("picker-folders").replaceChildren(...rows);
  dialog.querySelector("[value=choose]").disabled = found.path === "";
  dialog.querySelector("#picker-folders button")?.focus();
}

byId("browse")?.addEventListener("click", async () => {
  await show("");
  if ((await ask(dialog)) === "choose") field.value = shown;
  field.focus();
});
