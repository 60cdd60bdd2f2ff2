// The start of the page: one connection, and the view that the address names.
import { html, render, useEffect, useState } from "./html.js";
import { Connection } from "./connection.js";
import { SessionPage } from "./session.js";
import { SessionsPage } from "./sessions.js";

const connection = new Connection();

function place() {
  const [, session] = /^\/s\/([A-Za-z0-9_-]+)/.exec(location.pathname) ?? [];
  const at = Number(new URLSearchParams(location.search).get("at"));
  return { session, words: new URLSearchParams(location.search).get("q") ?? "", at: Number.isInteger(at) && at > 0 ? at : null, anchor: location.hash.startsWith("#m-") ? location.hash.slice(3) : null };
}

function Page() {
  const [here, set] = useState(place());
  const go = (address, isReplaced = false) => {
    history[isReplaced ? "replaceState" : "pushState"](null, "", address);
    set(place());
  };
  useEffect(() => {
    const moved = () => set(place());
    // Links inside the page do not load it anew.
    const clicked = (event) => {
      const link = event.target.closest?.("a[href]");
      if (!link || link.target || link.origin !== location.origin || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
      if (link.pathname !== "/" && !link.pathname.startsWith("/s/")) return;
      event.preventDefault();
      go(link.pathname + link.search + link.hash);
    };
    window.addEventListener("popstate", moved);
    document.addEventListener("click", clicked);
    return () => {
      window.removeEventListener("popstate", moved);
      document.removeEventListener("click", clicked);
    };
  }, []);
  if (!here.session) return html`<${SessionsPage} asked=${here.words} connection=${connection} go=${go} />`;
  return html`<${SessionPage} key=${here.session} id=${here.session} at=${here.at} anchor=${here.anchor} connection=${connection} go=${go} />`;
}

const root = document.getElementById("page");
// There is none when the page was left before this file came.
if (root) {
  root.replaceChildren();
  render(html`<${Page} />`, root);
}
