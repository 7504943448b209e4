// Jobs of the server: followed by their events, and shown with a bar and words.
import { NO_ANSWER, RequestError, api, say } from "./base.js";

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
        reject(new RequestError(NO_ANSWER));
      }
    };
  });
}

/** The job of a kind that is at work, for a page that is opened meanwhile; undefined if there is none. */
async function runningJob(kind) {
  const [job] = await api(`/api/jobs?kind=${kind}&state=running`);
  return job;
}

/**
 * Follows one job at a time with `follow(job)`. The place is taken before the server is asked to begin: neither a second
 * click nor the look for what was at work when the page was opened follows the same job again.
 */
export class Follower {
  #follow;
  #work = null;
  #begun = 0;

  constructor(follow) {
    this.#follow = follow;
  }

  get isBusy() {
    return this.#work !== null;
  }

  /** Resolves when nothing is followed. */
  async idle() {
    while (this.#work !== null) await this.#work;
  }

  /**
   * Follow the job that `ask()` resolves with, null for none; resolves with what `follow` returns, or null if none
   * could begin.
   */
  async begin(ask) {
    if (this.isBusy) return null;
    this.#begun += 1;
    const work = Promise.resolve().then(ask).then((job) => job && this.#follow(job)).catch((error) => (say(error.message, { seconds: 12 }), null));
    this.#work = work;
    try {
      return await work;
    } finally {
      this.#work = null;
    }
  }

  /** Follow what of a kind is at work, for a page that is opened meanwhile; resolves with null if there is nothing. */
  async join(kind, isOurs = () => true) {
    const before = this.#begun;
    const job = await runningJob(kind);
    if (job === undefined || before !== this.#begun || !isOurs(job)) return null;
    return this.begin(() => job);
  }
}

/** How far a job is, in words: what it does, how much is done, how fast, and the time that is left. */
export function progressWords({ done, total, detail, rate, seconds_left: left, seconds }) {
  const pace = rate >= 1 ? `${rate.toFixed(rate < 10 ? 1 : 0)} a second` : rate > 0 ? `${Math.round(60 * rate)} a minute` : "";
  const words = [detail || "starting", total ? `${done} of ${total}` : "", total && done < total ? pace : ""];
  if (left !== null && left !== undefined && done < total) words.push(`about ${span(left)} left`);
  else if (seconds >= 1) words.push(`${span(seconds)} so far`);
  return words.filter(Boolean).join(", ");
}

function span(seconds) {
  if (seconds < 90) return `${Math.max(Math.round(seconds), 1)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** Show how far a job is in a panel with a progress bar and a line of words. */
export function showProgress(panel, state) {
  const bar = panel.querySelector("progress");
  if (state.total) [bar.max, bar.value] = [state.total, state.done];
  else bar.removeAttribute("value");
  panel.querySelector("p").textContent = progressWords(state);
}

/**
 * Show in a panel how far a job is, until it ends; resolves with its last state. A button in the panel stops the job; the
 * `button` that began it cannot be pressed meanwhile. What was stopped or failed is said, unless `quiet`. The panel stays
 * until `onEnd` has shown what the job did.
 */
export async function followJob(job, panel, { button = null, quiet = false, onState = () => {}, onEnd = () => {} } = {}) {
  const stop = panel.querySelector("button");
  if (stop !== null) {
    stop.hidden = false;
    stop.onclick = () => api(`/api/jobs/${job.id}/stop`, { method: "POST" });
  }
  panel.hidden = false;
  if (button !== null) button.disabled = true;
  try {
    const ended = await watchJob(job.id, (state) => {
      showProgress(panel, state);
      onState(state);
    });
    if (ended.state !== "done" && !quiet) say(ended.error || "Stopped; finished work is kept.", { seconds: 12 });
    await onEnd(ended);
    return ended;
  } finally {
    panel.hidden = true;
    if (button !== null) button.disabled = false;
  }
}
