/**
 * The kit's own script in the browser: ages that tick, copying, and the mark that says whether the page is live.
 * Every page works without it. No framework, no inline code; it runs under `default-src 'self'`.
 */

/** The contract's short form of an age. */
function short(seconds        )         {
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** Seconds without an answer after which a page that polls every few seconds counts as stopped. */
const silentAfterSeconds = 40;
let heard = Date.now();

function setText(element                , text        )       {
  if (element && element.textContent !== text) element.textContent = text;
}

function tick()       {
  for (const element of document.querySelectorAll                 ("time[data-age]")) {
    const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(element.dateTime)) / 1000));
    setText(element, short(seconds) + (element.dataset["age"] ?? ""));
  }
  if (document.querySelector("[data-live]")) {
    const silent = Math.floor((Date.now() - heard) / 1000);
    setText(
      document.getElementById("live-text"),
      silent > silentAfterSeconds ? `Updates stopped ${short(silent)} ago` : "Live",
    );
  }
}

async function copy(button             )                {
  const text = document.getElementById(button.dataset["copy"] ?? "")?.textContent ?? "";
  await navigator.clipboard.writeText(text);
  setText(document.getElementById("said"), "Copied");
  button.setAttribute("aria-label", "Copied");
  setTimeout(() => button.setAttribute("aria-label", "Copy"), 1500);
}

document.addEventListener("htmx:after:swap", () => {
  heard = Date.now();
  tick();
});
document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest             ("[data-copy]") : null;
  if (button) void copy(button);
});
setInterval(tick, 1000);
tick();
