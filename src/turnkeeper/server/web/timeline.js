// The timeline: turns as bars, epochs as a band, marks, and a slider through every event.
import { html, useMemo, useRef, useState } from "./html.js";
import { count, duration, money, plural, whole } from "./format.js";

const HEIGHT = 44;
const SIGNS = { ask: "!", retry: "r", failed: "×", stopped: "■", "cut off": "k", pruned: "P", "left out": "Q", compaction: "C", context: "·", undo: "u", redo: "R", "undo kept": "U", removed: "-" };


export function Timeline({ timeline, at, go }) {
  const [dragged, drag] = useState(null);
  const timer = useRef(null);
  const total = Math.max(timeline.seq, 1);
  const place = dragged ?? at ?? total;
  const stops = useMemo(() => [...new Set(timeline.turns.flatMap((turn) => [turn.seq - 1, turn.end ?? turn.seq]))].filter((seq) => seq > 0).sort((one, other) => one - other), [timeline]);
  const marks = timeline.marks.filter((mark) => SIGNS[mark.kind] && mark.kind !== "context").slice(-300);
  const legend = [...new Set(marks.map((mark) => mark.kind))].map((kind) => `${SIGNS[kind]} ${kind}`).join(", ");
  const largest = Math.max(1, ...timeline.turns.map(sent));
  const x = (seq) => ((seq - 1) / Math.max(1, total - 1)) * 1000;
  const move = (seq, wait) => {
    const to = Math.max(1, Math.min(total, seq));
    drag(to);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => { drag(null); go(to >= total ? null : to); }, wait);
  };
  const pressed = (event) => {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    if (event.shiftKey) move(place + step, 150);
    else move((step < 0 ? stops.findLast((seq) => seq < place) : stops.find((seq) => seq > place)) ?? (step < 0 ? 1 : total), 150);
  };
  return html`<section class="timeline" aria-label="Timeline">
    <svg viewBox="0 0 1000 ${HEIGHT + 22}" preserveAspectRatio="none" role="img" aria-label=${`${plural(timeline.turns.length, "turn")}, ${plural(timeline.epochs.length, "epoch")}`}>
      ${timeline.turns.map((turn) => {
        const height = Math.max(3, (sent(turn) / largest) * HEIGHT);
        const width = Math.max(1.5, x(turn.end ?? total) - x(turn.seq));
        return html`<rect key=${turn.messageID} class=${turn.error ? "bar-bad" : turn.isSummary ? "bar-mark" : "bar"} x=${x(turn.seq)} y=${HEIGHT - height} width=${width} height=${height}>
          <title>${`${turn.model}, ${count(sent(turn))} tokens in, ${money(turn.cost)}${turn.completed ? `, ${duration(turn.completed - turn.time)}` : ""}`}</title></rect>`;
      })}
      ${timeline.epochs.map((epoch, nth) => {
        const end = timeline.epochs[nth + 1]?.seq ?? total;
        return html`<rect key=${epoch.number} class=${nth % 2 ? "epoch epoch-odd" : "epoch"} x=${x(epoch.seq)} y=${HEIGHT + 3} width=${Math.max(1, x(end) - x(epoch.seq))} height="7"><title>${`Epoch ${epoch.number}: ${epoch.reason}`}</title></rect>`;
      })}
      <line class="now" x1=${x(place)} x2=${x(place)} y1="0" y2=${HEIGHT + 22} />
    </svg>
    <div class="timeline-marks" aria-hidden="true">
      ${marks.map((mark) => html`<button tabindex="-1" key=${mark.seq} class=${`tick tick-${mark.kind.replace(" ", "-")}`}
        style=${{ left: `${x(mark.seq) / 10}%` }} title=${`${mark.kind}, event ${whole(mark.seq)}${mark.text ? `: ${mark.text}` : ""}`} onClick=${() => move(mark.seq, 0)}>${SIGNS[mark.kind]}</button>`)}
    </div>
    <label class="slider"><span class="sr">Event that is shown. Arrows step by turn, with Shift by event.</span>
      <input type="range" min="1" max=${total} value=${place} aria-valuetext=${`event ${place} of ${total}`} onInput=${(event) => move(Number(event.target.value), 150)} onKeyDown=${pressed} />
    </label>
    <p class="timeline-foot"><span>event ${whole(place)} of ${whole(total)}</span><span class="dim">bars: tokens sent in each turn; band: context epochs. ${legend}</span></p>
  </section>`;
}

function sent(turn) {
  return turn.tokens.input + turn.tokens.cache.read + turn.tokens.cache.write;
}
