// Queries and filters as addresses of pages, so that they can be kept, shared and gone back to.

const NUMBERS = ["start", "end", "time", "threshold"];

/** The address of the search page for a query. */
export function searchAddress(query) {
  return `/search?${words(query)}`;
}

/** The address of the match page of a query and a video. */
export function matchAddress(query, target) {
  const rest = words(query);
  rest.delete("box");
  rest.delete("time");
  rest.set("target", target);
  return `/match?${rest}`;
}

/** The query that an address names. */
export function readQuery(address) {
  const given = new URL(address, location.href).searchParams;
  const query = {};
  if (given.has("video")) query.video = Number(given.get("video"));
  if (given.has("upload")) query.upload = given.get("upload");
  for (const name of NUMBERS) if (given.has(name)) query[name] = Number(given.get(name));
  if (given.has("box")) query.box = given.get("box").split(",").map(Number);
  return query;
}

/** The address of a page with what a form asks for, without what the page shows anyway. */
export function formAddress(path, form, plain) {
  const rest = new URLSearchParams([...new FormData(form)].filter(([name, value]) => value !== (plain[name] ?? "")));
  return rest.size ? `${path}?${rest}` : path;
}

function words(query) {
  const rest = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (name === "box") rest.set(name, value.map((share) => share.toFixed(3)).join(","));
    else rest.set(name, typeof value === "number" && !Number.isInteger(value) ? value.toFixed(2) : value);
  }
  return rest;
}
