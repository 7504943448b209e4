// Two players in step along a matching segment.

/** Keeps a target player where the segment puts it, whatever happens to the query player. */
export class InStep {
  constructor(query, target) {
    this.query = query;
    this.target = target;
    this.segment = null;
    this.timer = setInterval(() => this.#follow(), 200);
    this.onSeek = () => this.segment && this.target.seek(this.#goal());
    query.video?.addEventListener("seeked", this.onSeek);
  }

  /** Play both from the begin of a segment, or only show its begin. */
  show(segment, { play = true } = {}) {
    this.segment = segment;
    this.query.flip(segment.mirrored);
    this.query.showBox(segment.query_box);
    this.target.showBox(segment.target_box);
    this.query.seek(segment.query_start);
    this.target.seek(segment.target_start);
    this.target.setRate(this.query.video === null ? 1 : segment.speed);
    if (!play) return;
    this.query.play();
    if (this.query.video !== null) this.target.play();
  }

  #goal() {
    return this.segment.target_start + (this.query.time - this.segment.query_start) * this.segment.speed;
  }

  #follow() {
    const segment = this.segment;
    if (segment === null || this.query.video === null || this.target.video === null) return;
    if (!this.query.paused && this.query.time >= segment.query_end && segment.query_end > segment.query_start) {
      this.query.pause();
    }
    if (this.query.paused) {
      this.target.pause();
      return;
    }
    const goal = this.#goal();
    if (Math.abs(this.target.time - goal) > 0.25) this.target.seek(goal);
    if (this.target.paused) this.target.play();
  }

  stop() {
    clearInterval(this.timer);
    this.query.video?.removeEventListener("seeked", this.onSeek);
    this.query.flip(false);
    this.query.showBox(null);
  }
}
