/**
 * The console page: a frame for the VNC viewer. All behaviour is in `/console-viewer.js`, because the
 * page's policy allows no inline script.
 */

/** What the viewer has to know. */
export interface ConsolePageConfig {
  readonly machine: string;
  readonly project: string;
  /** Why there is no console, when there is none. */
  readonly bootError: string;
}

/** The page as HTML. */
export function consolePage(config: ConsolePageConfig): string {
  const title = escapeHtml(config.machine);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Console of ${title}</title>
<style>
html, body { margin: 0; height: 100%; background: #101418; color: #e6edf3; font: 14px/1.5 system-ui, sans-serif; }
body { display: grid; grid-template-rows: auto 1fr; }
header { display: flex; gap: 8px; align-items: center; padding: 8px 12px; }
#status { margin-right: auto; }
#viewport { position: relative; min-height: 0; }
#screen { position: absolute; inset: 0; }
#err { color: #ff938a; padding: 12px; }
</style>
</head>
<body>
<header>
<span id="status" role="status">Connecting to ${title}</span>
<button id="btnPaste" type="button">Paste</button>
<button id="btnCad" type="button">Ctrl+Alt+Del</button>
<button id="btnReload" type="button">Reload</button>
</header>
<main id="viewport"><div id="screen"></div><p id="err">${escapeHtml(config.bootError)}</p><p id="hint"></p></main>
<script type="application/json" id="console-config">${inlineJson(config)}</script>
<script type="module" src="/console-viewer.js"></script>
</body>
</html>
`;
}

/** Text for HTML content and attributes. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

/** JSON that cannot end the script element it stands in. */
function inlineJson(value: ConsolePageConfig): string {
  return JSON.stringify(value)
    .replaceAll("<", String.raw`\u003c`)
    .replaceAll(">", String.raw`\u003e`)
    .replaceAll("&", String.raw`\u0026`);
}
