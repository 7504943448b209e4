// The library: results that follow the filter while it is typed, and keys to walk through the videos.
import { RequestError, api, byId, fetchPage, keyOf, make, putInPlace } from "./base.js";
import "./adding.js";
import "./picker.js";
import { selectionKey, selectStep, showSelection } from "./selection.js";

const form = byId("filter");
let results = byId("results");
let latest = 0;
let timer = 0;
document.body.classList.add("enhanced"); // results follow the form, so it needs no button

async function show(address, { push = true } = {}) {
  const turn = ++latest;
  results.setAttribute("aria-busy", "true");
  try {
    const page = await fetchPage(address);
    if (turn !== latest) return;
    const found = page.getElementById("results");
    if (found === null) throw new RequestError(page.querySelector(".error")?.textContent ?? "The server refused.");
    results.removeAttribute("aria-busy");
    const { activeElement: focused } = document;
    const card = focused?.closest("#results .card")?.dataset.id;
    putInPlace(results, found);
    results = byId("results");
    // The place of a card may have changed; the keyboard stays at its video.
    if (card && !focused.isConnected) results.querySelector(`.card[data-id="${card}"] a`)?.focus({ preventScroll: true });
    if (page.getElementById("tree")) await keepUnfolded(page.getElementById("tree"), address);
    if (turn !== latest) return;
    for (const id of ["facts", "tree", "lists", "list-names"]) {
      const [old, one] = [byId(id), page.getElementById(id)];
      if (old && one) putInPlace(old, one);
    }
    showSelection();
    if (push) history.pushState(null, "", address);
  } finally {
    if (turn === latest) results.removeAttribute("aria-busy");
  }
}

// What the address leaves out.
const PLAIN = { sort: "name", state: "all" };

function address() {
  const words = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value !== (PLAIN[name] ?? "")) words.set(name, value);
  return words.size ? `/?${words}` : "/";
}

function fillForm(words) {
  for (const field of form.elements) if (field.name) field.value = words.get(field.name) ?? PLAIN[field.name] ?? "";
}

byId("clear-filter").addEventListener("click", () => {
  fillForm(new URLSearchParams());
  show(address());
});

// A folder of the tree shows its folders.
document.addEventListener("click", (event) => {
  const button = event.target.closest(".unfold");
  if (button === null) return;
  unfold(button, button.getAttribute("aria-expanded") !== "true", location.search);
});

/** Show or hide the folders in a folder; `search` is the filter that their links keep. */
async function unfold(button, open, search) {
  const item = button.closest("li");
  const list = item.querySelector(":scope > ul");
  button.setAttribute("aria-expanded", String(open));
  if (list !== null) list.hidden = !open;
  else if (open) {
    const folders = await api(`/api/library/folders?${new URLSearchParams({ under: button.dataset.under })}`);
    item.append(make("ul", {}, ...folders.map((folder) => branch(folder, search))));
  }
}

/** In a tree that comes, folders are open and closed as in the one that is shown; the chosen one can be seen. */
async function keepUnfolded(tree, address) {
  const { search, searchParams } = new URL(address, location.href);
  const chosen = searchParams.get("folder") ?? "";
  for (const old of document.querySelectorAll("#tree .unfold")) {
    const { under } = old.dataset;
    const button = tree.querySelector(`.unfold[data-under="${CSS.escape(under)}"]`);
    const open = old.getAttribute("aria-expanded") === "true";
    if (button !== null && open !== (button.getAttribute("aria-expanded") === "true") && (open || !chosen.startsWith(under))) await unfold(button, open, search);
  }
}

function branch({ path, name, count, has_folders: hasFolders }, search) {
  const words = new URLSearchParams(search);
  words.delete("page");
  words.set("folder", path);
  const link = make("a", { href: `/?${words}` }, make("span", { class: "folder-name" }, name), " ", make("span", { class: "count" }, String(count)));
  const button = make("button", { type: "button", class: "unfold", "data-under": path, "aria-expanded": "false", "aria-label": `Folders in ${name}` });
  return make("li", {}, make("span", { class: "node" }, ...(hasFolders ? [button, link] : [link])));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  show(address());
});
form.addEventListener("input", (event) => {
  clearTimeout(timer);
  timer = setTimeout(() => show(address()), ["search", "number"].includes(event.target.type) ? 250 : 0);
});
document.addEventListener("click", (event) => {
  const link = event.target.closest(".pages a, #tree a, #lists a, .chips .tag a, .card .tag");
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  fillForm(new URL(link.href).searchParams);
  if (!link.matches(".pages a")) {
    show(link.getAttribute("href"));
    return;
  }
  show(link.getAttribute("href")).then(() => {
    window.scrollTo(0, 0);
    results.querySelector(".card a")?.focus({ preventScroll: true });
  });
});
window.addEventListener("popstate", () => {
  fillForm(new URLSearchParams(location.search));
  show(location.pathname + location.search, { push: false });
});

document.addEventListener("index-changed", () => show(location.pathname + location.search, { push: false }));

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
let hovered = 0;
document.addEventListener("pointermove", (event) => {
  const picture = event.target.closest?.(".card .picture");
  const image = picture?.querySelector("img");
  const seconds = Number(picture?.dataset.seconds ?? 0);
  if (!image || seconds < 2 || event.pointerType !== "mouse") return;
  const box = picture.getBoundingClientRect();
  const share = Math.floor(((event.clientX - box.left) / box.width) * 10) / 10;
  const moment = share * 10 + Number(picture.closest(".card").dataset.id) * 100;
  if (moment === hovered) return;
  hovered = moment;
  image.dataset.plain ??= image.getAttribute("src");
  image.src = `${image.dataset.plain}&time=${(share * seconds).toFixed(1)}`;
});
document.addEventListener("pointerout", (event) => {
  const image = event.target.closest?.(".card .picture")?.querySelector("img");
  if (image?.dataset.plain) image.src = image.dataset.plain;
});

// On a wide screen folders and lists are open from the begin.
if (matchMedia("(min-width: 60rem)").matches) for (const panel of document.querySelectorAll("#side details")) panel.open = true;
showSelection();
