// The library: results that follow the filter while it is typed, and keys to walk through the videos.
import { say } from "./base.js";
import "./adding.js";

const form = document.getElementById("filter");
let results = document.getElementById("results");
let latest = 0;
let timer = 0;

async function show(address, { push = true } = {}) {
  const turn = ++latest;
  results.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    const text = await answer.text();
    if (turn !== latest) return;
    const page = new DOMParser().parseFromString(text, "text/html");
    const found = page.getElementById("results");
    if (found === null) throw new Error(page.querySelector(".error")?.textContent ?? "The server refused.");
    results.replaceWith(found);
    results = found;
    document.getElementById("facts").replaceWith(page.getElementById("facts"));
    if (push) history.pushState(null, "", address);
  } catch (error) {
    say(error.message);
  }
}

function address() {
  const words = new URLSearchParams(new FormData(form));
  for (const [name, plain] of [["q", ""], ["sort", "name"], ["state", "all"]]) {
    if (words.get(name) === plain) words.delete(name);
  }
  return words.size ? `/?${words}` : "/";
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  show(address());
});
form.addEventListener("input", (event) => {
  clearTimeout(timer);
  timer = setTimeout(() => show(address()), event.target.type === "search" ? 250 : 0);
});
document.addEventListener("click", (event) => {
  const link = event.target.closest(".pages a");
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  show(link.getAttribute("href")).then(() => {
    window.scrollTo(0, 0);
    results.querySelector(".card a")?.focus({ preventScroll: true });
  });
});
window.addEventListener("popstate", () => {
  const words = new URLSearchParams(location.search);
  form.elements.q.value = words.get("q") ?? "";
  form.elements.sort.value = words.get("sort") ?? "name";
  form.elements.state.value = words.get("state") ?? "all";
  show(location.pathname + location.search, { push: false });
});

document.addEventListener("index-changed", () => show(location.pathname + location.search, { push: false }));

// Arrow keys walk through the grid as it is laid out; "/" goes to the field.
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, select, textarea")) {
    event.preventDefault();
    form.elements.q.focus();
    return;
  }
  const card = event.target.closest(".card");
  if (card === null || event.altKey || event.ctrlKey || event.metaKey) return;
  const cards = [...results.querySelectorAll(".card")];
  const columns = cards.filter((other) => other.offsetTop === cards[0].offsetTop).length;
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
  const next = cards[cards.indexOf(card) + (step ?? 0)];
  if (step === undefined || next === undefined) return;
  event.preventDefault();
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
