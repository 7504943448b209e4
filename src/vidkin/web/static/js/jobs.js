// Jobs of the server: followed by their events, and shown with a bar and words.
import { NO_ANSWER, RequestError, api, post, say } from "./base.js";

/** Follow a job by its events; calls onState with every state and resolves with the last one. */
export function watchJob(id, onState = () => {}) {
  return new Promise((resolve, reject) => {
    const events = new EventSource(`/api/jobs/${id}/events`);
    let failures = 0;
    events.onmessage = (event) => {
      failures = 0;
      const state = JSON.parse(event.data);
      onState(state);
      if (state.state === "running") return;
      events.close();
      resolve(state);
    };
    events.onerror = () => {
      failures += 1;
      if (failures <= 5) return;
      events.close();
      reject(new RequestError(NO_ANSWER));
    };
  });
}

/**
 * Follows one job at a time and shows it in a panel, which has a progress bar, a line of words and perhaps a button that
 * stops the job. The `button` that began it cannot be pressed meanwhile. What was stopped or failed is said, unless
 * `quiet`. The panel stays until `onEnd(state)` has shown what the job did.
 */
export class Jobs {
  #work = null;
  #begun = 0;
  job = null; // the one that is followed

  constructor(panel, { button = null, quiet = false, onBegin = () => {}, onState = () => {}, onEnd = () => {}, onError = (error) => say(error.message, { seconds: 12 }) } = {}) {
    Object.assign(this, { panel, button, quiet, onBegin, onState, onEnd, onError });
  }

  get isBusy() {
    return this.#work !== null;
  }

  /** Resolves when nothing is followed. */
  async idle() {
    while (this.isBusy) await this.#work;
  }

  /**
   * Follow the job that `ask()` resolves with; resolves with its last state, or null if none could begin. The place is
   * taken before the server is asked: neither a second click nor the look for what was at work when the page was opened
   * follows the same job again.
   */
  async begin(ask) {
    if (this.isBusy) return null;
    this.#begun += 1;
    this.#work = this.#run(ask).catch((error) => (this.onError(error), null));
    try {
      return await this.#work;
    } finally {
      this.#work = null;
    }
  }

  /** Follow what of a kind is at work, for a page that is opened meanwhile; resolves with null if there is nothing. */
  async join(kind, isOurs = () => true) {
    const before = this.#begun;
    const [job] = await api(`/api/jobs?kind=${kind}&state=running`);
    if (job === undefined || before !== this.#begun || !isOurs(job)) return null;
    return this.begin(() => job);
  }

  async #run(ask) {
    const { panel, button } = this;
    const stop = panel.querySelector("button");
    if (stop !== null) stop.hidden = true;
    if (button !== null) button.disabled = true;
    showProgress(panel, {}); // at once: something is on its way
    panel.hidden = false;
    try {
      const job = (this.job = await ask());
      if (stop !== null) {
        stop.hidden = false;
        stop.onclick = () => post(`/api/jobs/${job.id}/stop`);
      }
      this.onBegin(job);
      const ended = await watchJob(job.id, (state) => {
        showProgress(panel, state);
        this.onState(state);
      });
      if (ended.state !== "done" && !this.quiet) say(ended.error || "Stopped; finished work is kept.", { seconds: 12 });
      await this.onEnd(ended, job);
      return ended;
    } finally {
      this.job = null;
      panel.hidden = true;
      if (button !== null) button.disabled = false;
    }
  }
}

/** How far a job is, in a bar and in words: what it does, how much is done, how fast, and the time that is left. */
function showProgress(panel, { done, total, detail, rate, seconds, seconds_left: left }) {
  const bar = panel.querySelector("progress");
  if (total) [bar.max, bar.value] = [total, done];
  else bar.removeAttribute("value");
  const words = [detail || "starting"];
  if (total) words.push(`${done} of ${total}`);
  if (done < total && rate > 0) words.push(rate < 1 ? `${Math.round(60 * rate)} a minute` : `${rate.toFixed(rate < 10 ? 1 : 0)} a second`);
  if (done < total && Number.isFinite(left)) words.push(`about ${span(left)} left`);
  else if (seconds >= 1) words.push(`${span(seconds)} so far`);
  panel.querySelector("p").textContent = words.join(", ");
}

function span(seconds) {
  if (seconds < 90) return `${Math.max(Math.round(seconds), 1)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
