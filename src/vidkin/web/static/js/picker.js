// Choosing a folder of the server's computer.
import { api, make, say } from "./base.js";

const dialog = document.getElementById("picker");
const field = document.querySelector("#add [name=path]");
let shown = "";

async function show(path) {
  const found = await api(`/api/computer/folders?${new URLSearchParams({ path })}`);
  shown = found.path;
  document.getElementById("picker-path").textContent = found.path || "Folders of the computer that serves this page";
  const row = (label, target) => make("li", {}, make("button", { type: "button", onclick: () => show(target).catch((error) => say(error.message)) }, label));
  const rows = found.folders.map(([name, target]) => row(name, target));
  if (found.parent !== null) rows.unshift(row("Up", found.parent));
  if (!found.complete) rows.push(make("li", { class: "facts" }, "There are more; type the path instead."));
  if (!rows.length) rows.push(make("li", { class: "facts" }, "There are no folders in it."));
  document.getElementById("picker-folders").replaceChildren(...rows);
  dialog.querySelector("[value=choose]").disabled = found.path === "";
  dialog.querySelector("#picker-folders button")?.focus();
}

document.getElementById("browse")?.addEventListener("click", async () => {
  try {
    await show("");
    dialog.returnValue = "";
    dialog.showModal();
  } catch (error) {
    say(error.message);
  }
});
dialog?.addEventListener("close", () => {
  if (dialog.returnValue === "choose") field.value = shown;
  field.focus();
});
