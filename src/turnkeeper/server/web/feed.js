// A long list of rows of which only those near the screen exist. The row under the reader's eye keeps its place.
import { Component, html } from "./html.js";

const ABOVE = 1.2; // Screens that are kept above and below.
const ROWS_MIN = 12;

export class Feed extends Component {
  constructor(props) {
    super(props);
    this.heights = new Map();
    this.elements = new Map();
    this.state = { first: Math.max(0, props.rows.length - ROWS_MIN), last: props.rows.length - 1 };
    this.isFollowing = props.follow ?? true;
    this.anchor = null;
    this.width = 0;
    this.seen = null;
    this.observer = new ResizeObserver(() => this.measure());
  }

  componentDidMount() {
    const box = this.box;
    this.width = box.clientWidth;
    this.observer.observe(box);
    box.addEventListener("scroll", () => this.scrolled(), { passive: true });
    // Following ends at the first move upward, before the scroll that it causes.
    box.addEventListener("wheel", (event) => event.deltaY < 0 && this.leave(), { passive: true });
    box.addEventListener("touchmove", () => this.leave(), { passive: true });
    box.addEventListener("keydown", (event) => {
      if (["PageUp", "ArrowUp", "Home"].includes(event.key)) this.leave();
      if (event.key === "End" && !isTyping(event.target)) this.follow();
    });
    this.props.handle?.(this);
    this.settle();
  }

  componentDidUpdate(before) {
    if (before.rows !== this.props.rows) {
      if (before.identity !== this.props.identity) this.heights.clear();
      this.arrange();
    }
    this.settle();
  }

  componentWillUnmount() {
    this.observer.disconnect();
  }

  leave() {
    if (!this.isFollowing || this.box.scrollHeight <= this.box.clientHeight) return;
    this.isFollowing = false;
    this.seen = this.props.rows.at(-1)?.id;
    this.setAnchor();
    this.forceUpdate();
  }

  /** Go to the end and stay there. */
  follow() {
    this.isFollowing = true;
    this.anchor = null;
    this.arrange();
    this.settle();
    this.forceUpdate();
  }

  /** Show a row, a third down the screen. */
  show(id, focus = false) {
    const place = this.props.rows.findIndex((row) => row.id === id);
    if (place < 0) return false;
    this.isFollowing = false;
    this.seen = this.props.rows.at(-1)?.id;
    this.anchor = { id, offset: this.box.clientHeight / 3 };
    this.setState(this.around(place), () => {
      this.settle();
      if (focus) this.elements.get(id)?.firstElementChild?.focus({ preventScroll: true });
    });
    return true;
  }

  height(row) {
    return this.heights.get(row.id) ?? this.props.guess(row);
  }

  /** The rows that a screen needs whose top is at this offset. */
  range(top, height) {
    const { rows } = this.props;
    let first = 0;
    let sum = 0;
    while (first < rows.length - 1 && sum + this.height(rows[first]) < top - height * ABOVE) sum += this.height(rows[first++]);
    let last = first;
    while (last < rows.length - 1 && sum < top + height * (1 + ABOVE)) sum += this.height(rows[last++]);
    return { first: Math.max(0, Math.min(first, last - ROWS_MIN)), last };
  }

  around(place) {
    const top = this.props.rows.slice(0, place).reduce((sum, row) => sum + this.height(row), 0);
    return this.range(top, this.box.clientHeight);
  }

  arrange() {
    const { rows } = this.props;
    if (!this.box || !rows.length) return;
    let next;
    if (this.isFollowing) {
      let last = rows.length - 1;
      let first = last;
      let sum = 0;
      while (first > 0 && (sum < this.box.clientHeight * (1 + ABOVE) || last - first < ROWS_MIN)) sum += this.height(rows[first--]);
      next = { first, last };
    } else {
      const place = this.anchor ? rows.findIndex((row) => row.id === this.anchor.id) : -1;
      next = place >= 0 ? this.around(place) : this.range(this.box.scrollTop, this.box.clientHeight);
    }
    if (next.first !== this.state.first || next.last !== this.state.last) this.setState(next);
  }

  scrolled() {
    const { box } = this;
    if (this.isMoving) {
      this.isMoving = false;
      return;
    }
    const isAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 2 && this.state.last >= this.props.rows.length - 1;
    if (this.isFollowing && !isAtEnd && box.scrollTop < this.lastTop - 1) this.leave();
    else if (!this.isFollowing && isAtEnd && box.scrollTop > this.lastTop) {
      this.isFollowing = true;
      this.forceUpdate();
    }
    this.lastTop = box.scrollTop;
    if (this.isFollowing) return;
    this.setAnchor();
    const next = this.range(box.scrollTop, box.clientHeight);
    if (next.first !== this.state.first || next.last !== this.state.last) this.setState(next);
  }

  /** Remember which row is at the top of the screen, and where. None is there right after a jump: then `settle` does it. */
  setAnchor() {
    const { box } = this;
    const shown = this.props.rows.slice(this.state.first, this.state.last + 1).find(({ id }) => {
      const element = this.elements.get(id);
      return element && element.offsetTop + element.offsetHeight > box.scrollTop && element.offsetTop < box.scrollTop + box.clientHeight;
    });
    this.anchor = shown ? { id: shown.id, offset: this.elements.get(shown.id).offsetTop - box.scrollTop } : null;
  }

  measure() {
    if (this.box.clientWidth !== this.width) {
      this.width = this.box.clientWidth;
      this.heights.clear();
    }
    this.settle();
  }

  /** After anything moved: keep the heights, and put the anchor, or the end, back to its place. */
  settle() {
    const { box } = this;
    if (!box) return;
    for (const [id, element] of this.elements) if (element.isConnected) this.heights.set(id, element.offsetHeight);
    let top = box.scrollTop;
    if (this.isFollowing) top = box.scrollHeight - box.clientHeight;
    else if (this.anchor) {
      const element = this.elements.get(this.anchor.id);
      if (element) top = element.offsetTop - this.anchor.offset;
    }
    if (Math.abs(top - box.scrollTop) >= 1) {
      const before = box.scrollTop;
      box.scrollTop = top;
      this.isMoving = box.scrollTop !== before;
    }
    if (!this.isFollowing && !this.anchor) this.setAnchor();
    this.lastTop = box.scrollTop;
    this.props.need?.(this.state.first, Math.max(this.state.last, 0));
    const elements = box.firstElementChild;
    if (elements && this.watched !== elements) {
      this.watched = elements;
      this.observer.observe(elements);
    }
  }

  element(id, element) {
    if (element) this.elements.set(id, element);
    else this.elements.delete(id);
  }

  render({ rows, row, label, isBusy }) {
    const first = Math.min(this.state.first, Math.max(0, rows.length - 1));
    const last = Math.min(this.state.last, rows.length - 1);
    const above = rows.slice(0, first).reduce((sum, one) => sum + this.height(one), 0);
    const below = rows.slice(last + 1).reduce((sum, one) => sum + this.height(one), 0);
    // Counted from the last row that was seen: older rows may come in at the beginning meanwhile.
    const seen = this.isFollowing ? -1 : rows.findLastIndex((one) => one.id === this.seen);
    const news = seen < 0 ? 0 : rows.length - 1 - seen;
    return html`<div class="feed-frame">
      <div class="feed" ref=${(box) => { this.box = box; }} tabindex="0" role="feed" aria-label=${label} aria-busy=${isBusy ? "true" : "false"}>
        <div class="feed-rows">
          ${last - first + 1 < rows.length && html`<p class="print-note">Messages ${first + 1} to ${last + 1} of ${rows.length}: what was near the screen. “turnkeeper session export --html” writes all.</p>`}
          <div style=${{ height: `${above}px` }}></div>
          ${rows.slice(first, last + 1).map(
            (one, nth) => html`<div class="feed-row" key=${one.id} ref=${(element) => this.element(one.id, element)}>
              ${row(one, { position: first + nth + 1, size: rows.length })}
            </div>`,
          )}
          <div style=${{ height: `${below}px` }}></div>
        </div>
      </div>
      ${!this.isFollowing &&
      html`<button class="pill" onClick=${() => this.follow()}>${news ? `${news} new below` : "To the end"} ↓</button>`}
    </div>`;
  }
}

export function isTyping(element) {
  return element instanceof HTMLElement && (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName));
}
