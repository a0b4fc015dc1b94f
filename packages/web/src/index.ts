/**
 * `@kontinuum/web`: the web kit. Server-rendered; knows nothing of what a page is about.
 */
export * from "./assets.ts";
export * from "./components/control.ts";
export * from "./components/section.ts";
export * from "./components/status.ts";
export * from "./components/table.ts";
export * from "./components/time.ts";
export * from "./html.ts";
export * from "./page.ts";
export * from "./topology.ts";
