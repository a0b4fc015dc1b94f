/**
 * The document and the shell around every page: navigation, bar, breadcrumbs, live mark, notices.
 *
 * The policy is `default-src 'self'`: no inline script or style, no other host.
 */
import { assetPath } from "./assets.ts";
import { glyph, type Tone } from "./components/status.ts";
import { html, raw, type Content, type Html } from "./html.ts";

/** An entry of the side navigation. */
export interface NavEntry {
  readonly label: string;
  readonly href: string;
  /** Shown only when something needs attention or is in progress. */
  readonly count?: { readonly tone: Tone; readonly number: number };
}

/** Entries under an optional heading. */
export interface NavGroup {
  readonly title?: string;
  readonly entries: readonly NavEntry[];
}

/** What the shell needs to know. */
export interface ShellOptions {
  /** Page title; the document's is `<title> - <product>`. */
  readonly title: string;
  readonly product: string;
  readonly groups: readonly NavGroup[];
  /** Address of the active entry. */
  readonly active: string;
  /** The tenant's namespaces; absent in `krytond`. */
  readonly tenant?: {
    readonly current: string;
    readonly all: readonly string[];
    href(namespace: string): string;
  };
  readonly crumbs: readonly { readonly label: string; readonly href?: string }[];
  /** Process and version at the foot. */
  readonly foot: string;
  readonly user?: string;
  readonly theme?: "light" | "dark";
  readonly notices?: Content;
  /** The page re-reads itself from this address; without it there is no live mark. */
  readonly live?: { readonly href: string; readonly everySeconds: number; readonly id: string };
  readonly body: Content;
}

/** Response headers every page carries. */
export const pageHeaders: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; form-action 'self'; img-src 'self' data:",
  "x-content-type-options": "nosniff",
  "referrer-policy": "same-origin",
};

const mark = raw(
  '<svg width="26" height="12" viewBox="0 0 26 12" aria-hidden="true"><path d="M0 6h9M17 6h9" stroke="currentColor" stroke-width="1.5"/><rect x="9" y="2" width="8" height="8" rx="1.5" fill="none" stroke="currentColor" stroke-width="1.5"/><circle cx="4" cy="6" r="2" fill="currentColor"/><circle cx="22" cy="6" r="2" fill="currentColor"/></svg>',
);

const htmxConfig = '{"includeIndicatorCSS":false,"morphIgnore":["data-htmx-powered","open","aria-expanded"]}';

/** A bare document: sign-in and errors use it directly. */
export function page(options: {
  readonly title: string;
  readonly theme?: "light" | "dark";
  readonly body: Content;
}): string {
  return String(
    html`${raw("<!doctype html>")}
      <html lang="en" ${options.theme ? html`data-theme="${options.theme}"` : null}>
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="htmx-config" content="${htmxConfig}" />
          <title>${options.title}</title>
          <link rel="icon" href="data:," />
          <link
            rel="preload"
            href="${assetPath("hanken-grotesk.woff2")}"
            as="font"
            type="font/woff2"
            crossorigin
          />
          <link rel="stylesheet" href="${assetPath("kit.css")}" />
          <script src="${assetPath("htmx.js")}" defer></script>
          <script src="${assetPath("app.js")}" defer></script>
        </head>
        <body>
          ${options.body}
        </body>
      </html>`,
  );
}

function navEntry(entry: NavEntry, active: string): Html {
  return html`<a
    class="entry"
    href="${entry.href}"
    ${entry.href === active ? raw('aria-current="page"') : null}
    >${entry.label}${
      entry.count
        ? html`<span class="nav-count">${glyph(entry.count.tone)}${entry.count.number}</span>`
        : null
    }</a
  >`;
}

function tenantSwitcher(tenant: NonNullable<ShellOptions["tenant"]>): Html {
  return html`<details class="tenant">
    <summary class="button">${tenant.current}</summary>
    <ul>
      ${tenant.all.slice(0, 200).map((name) => html`<li><a class="entry" href="${tenant.href(name)}">${name}</a></li>`)}
    </ul>
    ${tenant.all.length > 200 ? html`<p>and ${tenant.all.length - 200} more</p>` : null}
  </details>`;
}

/** A whole page inside the shell. */
export function shell(options: ShellOptions): string {
  const content = html`<div
    id="${options.live?.id ?? "content"}"
    class="stack"
    ${
      options.live
        ? html`data-live hx-get="${options.live.href}" hx-trigger="every ${options.live.everySeconds}s"
          hx-select="#${options.live.id}" hx-swap="outerMorph"`
        : null
    }
  >
    ${options.notices}${options.body}
  </div>`;
  const navigation = html`${options.tenant ? tenantSwitcher(options.tenant) : null}${options.groups.map(
    (group) =>
      html`${group.title ? html`<p class="nav-group">${group.title}</p>` : null}${group.entries.map((entry) => navEntry(entry, options.active))}`,
  )}`;
  return page({
    title: `${options.title} - ${options.product}`,
    ...(options.theme ? { theme: options.theme } : {}),
    body: html`<a class="skip" href="#main">Skip to content</a>
      <div class="frame">
        <nav class="nav" aria-label="Main">
          <a class="brand" href="/app">${mark}${options.product}</a>
          <details class="nav-menu">
            <summary class="button">Menu</summary>
            ${navigation}
          </details>
          <p class="nav-foot">${options.foot}</p>
        </nav>
        <div>
          <header class="bar">
            <nav aria-label="Breadcrumb">
              <ol class="crumbs">
                ${options.crumbs.map(
                  (crumb, index) =>
                    html`<li>
                      ${index > 0 ? html`<span class="slash" aria-hidden="true">/</span>` : null}${
                        crumb.href
                          ? html`<a href="${crumb.href}">${crumb.label}</a>`
                          : html`<span
                              ${index === options.crumbs.length - 1 ? raw('aria-current="page"') : null}
                              >${crumb.label}</span
                            >`
                      }
                    </li>`,
                )}
              </ol>
            </nav>
            <div class="bar-right">
              ${
                options.live
                  ? html`<span class="live">${glyph("ok")}<span id="live-text">Live</span></span>`
                  : null
              }${options.user ? html`<span class="hide-phone">${options.user}</span>` : null}
            </div>
          </header>
          <main id="main" class="content" tabindex="-1">${content}</main>
        </div>
      </div>
      <div id="said" class="vh" role="status" aria-live="polite"></div>`,
  });
}

/** Title, state, one sentence and the verbs of a page. */
export function pageHead(options: {
  readonly title: string;
  readonly chip?: Content;
  readonly sentence?: Content;
  readonly verbs?: Content;
}): Html {
  return html`<div class="page-head">
    <div>
      <h1>${options.title}${options.chip}</h1>
      ${options.sentence ? html`<p>${options.sentence}</p>` : null}
    </div>
    ${options.verbs ? html`<div class="page-verbs">${options.verbs}</div>` : null}
  </div>`;
}
