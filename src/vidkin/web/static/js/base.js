// What every page uses: requests to the API, messages, and watching jobs.

// Tabs take turns where they wait for the same kind of work.
const tab = crypto.getRandomValues(new Uint32Array(2)).join("-");
let tickets = 0;

/**
 * Ask the API; resolves with the JSON answer, rejects with an Error whose message says what is wrong. If `onWait` is
 * given, it is called with the place in the line while the request waits for others: 1 is the next, 0 has begun.
 */
export async function api(path, { method = "GET", body, signal, onWait } = {}) {
  const options = { method, signal, headers: { Accept: "application/json" } };
  if (onWait) {
    const ticket = `${tab}.${(tickets += 1)}`;
    Object.assign(options.headers, { "X-Vidkin-Tab": tab, "X-Vidkin-Ticket": ticket });
    const timer = setInterval(async () => {
      const answer = await fetch(`/api/searches/${ticket}`, { signal }).catch(() => null);
      if (answer?.ok) onWait((await answer.json()).position);
    }, 1000);
    return send(path, options, body).finally(() => clearInterval(timer));
  }
  return send(path, options, body);
}

async function send(path, options, body) {
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer; is `vidkin serve` still running?");
  }
  const value = answer.headers.get("Content-Type")?.startsWith("application/json") ? await answer.json() : null;
  if (!answer.ok) throw new Error(value?.detail ?? `The server answered ${answer.status}.`);
  return value;
}

/** Show a line at the bottom of the page for some seconds; screen readers read it. */
export function say(text, seconds = 6) {
  const line = document.createElement("p");
  line.textContent = text;
  document.getElementById("messages").append(line);
  setTimeout(() => line.remove(), seconds * 1000);
}

/** Follow a job by its events; calls onState with every state and resolves with the last one. */
export function watchJob(id, onState = () => {}) {
  return new Promise((resolve, reject) => {
    const events = new EventSource(`/api/jobs/${id}/events`);
    let failures = 0;
    events.onmessage = (event) => {
      failures = 0;
      const state = JSON.parse(event.data);
      onState(state);
      if (state.state !== "running") {
        events.close();
        resolve(state);
      }
    };
    events.onerror = () => {
      failures += 1;
      if (failures > 5) {
        events.close();
        reject(new Error("The server does not answer; is `vidkin serve` still running?"));
      }
    };
  });
}

/** The job of a kind that is at work, for a page that is opened meanwhile; undefined if there is none. */
export async function runningJob(kind) {
  const jobs = await api("/api/jobs");
  return jobs.find((job) => job.kind === kind && job.state === "running");
}

/** Show how far a job is in a panel with a progress bar and a line of words. */
export function showProgress(panel, { done, total, detail }) {
  const bar = panel.querySelector("progress");
  if (total) [bar.max, bar.value] = [total, done];
  else bar.removeAttribute("value");
  panel.querySelector("p").textContent = [detail || "starting", total ? `${done} of ${total}` : ""].filter(Boolean).join(", ");
}

/** What a search does while others are served first, from its place in the line. */
export function waiting(position, busy = "Searching...") {
  if (position <= 0) return busy;
  return position === 1 ? "Waiting: next in line..." : `Waiting: ${position - 1} other searches come first...`;
}

/** Seconds as m:ss.s or h:mm:ss.s, as the server writes them. */
export function clock(seconds) {
  const tenths = Math.floor(Math.max(seconds, 0) * 10 + 0.5 + 1e-9);
  const minutes = Math.floor(tenths / 600);
  const rest = tenths % 600;
  const tail = `${String(Math.floor(rest / 10)).padStart(2, "0")}.${rest % 10}`;
  return minutes < 60 ? `${minutes}:${tail}` : `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${tail}`;
}

/** An element with attributes (those of properties beginning with "on" are listeners) and children. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}
