// Small pieces that several views use.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { LIVE } from "./connection.js";
import { bytes, dataSize, duration, spelt } from "./format.js";

export function Copy({ text, what = "text" }) {
  const [said, say] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("copied");
    } catch {
      say("not allowed");
    }
    setTimeout(() => say(""), 1500);
  };
  return html`<button class="link" onClick=${copy} aria-label=${`Copy ${what}`}>${said || "Copy"}</button>`;
}

/** Seconds that go on; up to a moment, if one is given. Screen readers are spared them. */
export function Ticking({ since, until }) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (until) return undefined;
    const timer = setInterval(() => tick((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, [until]);
  return html`<span aria-hidden="true">${duration(Math.max(0, Math.floor(((until ?? Date.now()) - since) / 1000) * 1000)).replace(".0", "")}</span>`;
}

const RASTER = /^data:image\/(png|jpe?g|gif|webp);base64,/i;

/** An attached file. Only pictures that cannot run anything are shown as such. */
export function File({ file }) {
  const name = spelt(file.filename || file.mime || "file");
  const size = file.url?.startsWith("data:") ? bytes(dataSize(file.url)) : "";
  if (RASTER.test(file.url ?? "")) {
    return html`<figure class="image"><img src=${file.url} alt=${name} loading="lazy" /><figcaption>${name} ${size}</figcaption></figure>`;
  }
  return html`<p class="file"><span aria-hidden="true">▤</span> ${name} <span class="dim">${file.mime} ${size}</span></p>`;
}

/** A dialog above the page. It takes the focus and gives it back. */
export function Sheet({ title, onClose, wide, children }) {
  const box = useRef(null);
  // An ordinary effect comes after the next frame: what is typed until then would go to the page below.
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    // As long as the dialog is there, nothing below it takes the focus.
    return () => queueMicrotask(() => before?.focus?.());
  }, []);
  return html`<dialog class=${wide ? "sheet wide" : "sheet"} ref=${box} aria-label=${title} onClose=${onClose} onCancel=${onClose}
    onClick=${(event) => event.target === box.current && onClose()}>
    <header><h2>${title}</h2><button class="quiet" onClick=${onClose} aria-label="Close">Close</button></header>
    <div class="sheet-body">${children}</div>
  </dialog>`;
}

/** What went wrong. That the server cannot be reached is said until it can; then what failed is read again. */
export function Problem({ error, again }) {
  const [over, setOver] = useState(null);
  // An ordinary effect comes after the next frame; a server that is back before that would not be heard.
  useLayoutEffect(() => {
    if (error.status !== 0) return undefined;
    const reached = () => { setOver(error); again?.(); };
    window.addEventListener(LIVE, reached);
    return () => window.removeEventListener(LIVE, reached);
  }, [error]);
  if (over === error) return null;
  return html`<p class="problem" role="alert">${error.message} ${again && html`<button class="link" onClick=${again}>Try again</button>`}</p>`;
}

/** A part of a whole as a bar; the number stands next to it. */
export function Meter({ value, label, isGood }) {
  const percent = Math.max(0, Math.min(100, Math.round(value * 100)));
  const level = isGood ? "good" : percent >= 90 ? "full" : percent >= 70 ? "high" : "low";
  return html`<span class=${`meter meter-${level}`} role="img" aria-label=${`${label}: ${percent} percent`}><span style=${{ width: `${percent}%` }}></span></span>`;
}
