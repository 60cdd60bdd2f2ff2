// Preact with htm templates, and the few hooks that the page uses.
import { Component, Fragment, h, render } from "./vendor/preact.js";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-hooks.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);

export { Component, Fragment, render, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState };

/** A component that is rendered again only if one of its properties is another value. */
export function memo(view) {
  return class extends Component {
    shouldComponentUpdate(next) {
      const names = new Set([...Object.keys(next), ...Object.keys(this.props)]);
      return [...names].some((name) => name !== "children" && next[name] !== this.props[name]);
    }

    render(props) {
      return h(view, props); // A component of its own, so that its state may change while its properties do not.
    }
  };
}

/** Render again whenever a store tells of a change. */
export function useStore(store) {
  const [, again] = useState(0);
  useEffect(() => {
    let alive = true;
    const stop = store.subscribe(() => alive && again((count) => count + 1));
    again((count) => count + 1);
    return () => {
      alive = false;
      stop();
    };
  }, [store]);
  return store;
}

/** The result of an asynchronous read: {value, error, again}. It is read again when one of the inputs changes. */
export function useRead(read, inputs) {
  const [result, set] = useState({ value: null, error: null });
  const [count, setCount] = useState(0);
  useEffect(() => {
    let current = true;
    read().then(
      (value) => current && set({ value, error: null }),
      (error) => current && set((before) => ({ value: before.value, error })),
    );
    return () => {
      current = false;
    };
  }, [...inputs, count]);
  return { ...result, again: () => setCount((before) => before + 1) };
}
