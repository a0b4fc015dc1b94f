/**
 * A real Chromium, headless, for tests of the pages.
 */
import { chromium, type Browser, type Page } from "playwright-core";
import { findProgram, type Missing } from "./service.ts";

/** Path of the browser, or what is missing. */
export const findBrowser = (): Promise<string | Missing> => findProgram("chromium", "chromium");

/** Starts it with everything that would call home switched off. */
export async function startBrowser(): Promise<Browser> {
  const program = await findBrowser();
  if (typeof program !== "string") throw new Error(program.missing);
  return chromium.launch({
    executablePath: program,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** What went wrong in a page: script errors, console errors, refused resources, requests to other hosts. */
export function watchPage(page: Page, origin: string): string[] {
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(`script: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning")
      complaints.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith("data:")) complaints.push(`foreign request: ${url}`);
  });
  return complaints;
}
