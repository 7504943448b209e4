// The library: results that follow the filter while it is typed, and keys to walk through the videos.
import { RequestError, api, byId, keyOf, make, morph, onClick, onInput, refresher } from "./base.js";
import "./adding.js";
import { formAddress } from "./addresses.js";
import "./picker.js";
import { selectStep, selectionKey, showSelection } from "./selection.js";

const form = byId("filter");
const results = byId("results");
// What the address leaves out.
const PLAIN = { sort: "name", state: "all" };
const address = () => formAddress("/", form, PLAIN);
document.body.classList.add("enhanced"); // results follow the form, so it needs no button

const refresh = refresher((page) => {
  if (page.getElementById("results") === null) throw new RequestError(page.querySelector(".error")?.textContent ?? "The server refused.");
  for (const id of ["results", "facts", "tree", "lists", "list-names"]) if (byId(id)) morph(byId(id), page.getElementById(id));
  markFolder();
  showSelection();
});

async function show(where = address(), { push = true } = {}) {
  results.setAttribute("aria-busy", "true");
  await refresh(where).finally(() => results.removeAttribute("aria-busy"));
  if (push) history.pushState(null, "", where);
}

function fillForm(words) {
  for (const field of form.elements) if (field.name) field.value = words.get(field.name) ?? PLAIN[field.name] ?? "";
}

// A folder of the tree shows its folders, which stay while the library is filtered.

async function unfold(button) {
  const item = button.closest("li");
  const list = item.querySelector(":scope > ul");
  if (list !== null) list.hidden = !list.hidden;
  else item.append(make("ul", { "data-own": true }, ...(await api(`/api/library/folders?${new URLSearchParams({ under: button.dataset.under })}`)).map(branch)));
  markFolder();
}

function branch({ path, name, count, has_folders: hasFolders }) {
  const link = make("a", { href: `/?${new URLSearchParams({ folder: path })}` }, make("span", { class: "folder-name" }, name), " ", make("span", { class: "count" }, String(count)));
  const button = make("button", { type: "button", class: "unfold", "data-under": path, "aria-label": `Folders in ${name}` });
  return make("li", {}, make("span", { class: "node" }, ...(hasFolders ? [button, link] : [link])));
}

/** Which folder is chosen and which are open; links of folders keep the filter. */
function markFolder() {
  const chosen = form.elements.folder.value;
  for (const link of document.querySelectorAll("#tree a")) {
    const folder = new URL(link.href).searchParams.get("folder") ?? "";
    form.elements.folder.value = folder;
    link.href = address();
    if (folder === chosen) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  form.elements.folder.value = chosen;
  for (const button of document.querySelectorAll("#tree .unfold")) {
    button.setAttribute("aria-expanded", String(button.closest("li").querySelector(":scope > ul")?.hidden === false));
  }
}

onInput(form, () => show());
onClick({
  "#clear-filter": () => {
    fillForm(new URLSearchParams());
    show();
  },
  ".unfold": unfold,
  ".pages a, #tree a, #lists a, .chips .tag a, .card .tag": async (link, event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    fillForm(new URL(link.href).searchParams);
    await show(link.getAttribute("href"));
    if (!link.matches(".pages a")) return;
    window.scrollTo(0, 0);
    results.querySelector(".card a")?.focus({ preventScroll: true });
  },
});
const reload = () => show(location.pathname + location.search, { push: false });
window.addEventListener("popstate", () => {
  fillForm(new URLSearchParams(location.search));
  reload();
});
document.addEventListener("index-changed", reload);

// Arrow keys walk through the grid as it is laid out; "/" goes to the field.
document.addEventListener("keydown", (event) => {
  const key = keyOf(event);
  if (key === "/") {
    event.preventDefault();
    form.elements.q.focus();
    return;
  }
  const card = event.target.closest(".card");
  if (selectionKey(event, key, card) || key === null || card === null) return;
  const cards = [...results.querySelectorAll(".card")];
  const columns = cards.filter((other) => other.offsetTop === cards[0].offsetTop).length;
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[key];
  const next = cards[cards.indexOf(card) + (step ?? 0)];
  if (step === undefined || next === undefined) return;
  event.preventDefault();
  if (event.shiftKey) selectStep(card, next);
  next.querySelector("a").focus();
});

// Moving over a picture shows other moments of the video.
document.addEventListener("pointermove", (event) => {
  const picture = event.target.closest?.(".card .picture");
  const image = picture?.querySelector("img");
  const seconds = Number(picture?.dataset.seconds ?? 0);
  if (!image || seconds < 2 || event.pointerType !== "mouse") return;
  const box = picture.getBoundingClientRect();
  const share = Math.floor(((event.clientX - box.left) / box.width) * 10) / 10;
  image.dataset.plain ??= image.getAttribute("src");
  const moment = `${image.dataset.plain}&time=${(share * seconds).toFixed(1)}`;
  if (image.getAttribute("src") !== moment) image.src = moment;
});
document.addEventListener("pointerout", (event) => {
  const image = event.target.closest?.(".card .picture")?.querySelector("img");
  if (image?.dataset.plain) image.src = image.dataset.plain;
});

// On a wide screen folders and lists are open from the begin.
if (matchMedia("(min-width: 60rem)").matches) for (const panel of document.querySelectorAll("#side details")) panel.open = true;
showSelection();
