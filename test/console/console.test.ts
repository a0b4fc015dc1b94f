/**
 * The pages of a real hub in a real browser: what they show, that forms work, that nothing leaves the host, and what the
 * accessibility checker says, in both themes and two widths.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import AxeBuilder from "@axe-core/playwright";
import type { Browser, BrowserContext } from "playwright-core";
import { findBrowser, startBrowser, watchPage } from "../services/browser.ts";
import { startHub, type Hub } from "../services/hub.ts";
import { skipUnless, waitFor } from "../services/service.ts";

const skip = skipUnless(await findBrowser());
let hub: Hub;
let browser: Browser;

before(async () => {
  if (skip) return;
  [hub, browser] = await Promise.all([startHub(), startBrowser()]);
});
after(async () => {
  await browser?.close();
  await hub?.stop();
});

async function visit(
  address: string,
  options: Parameters<Browser["newContext"]>[0] = {},
): Promise<{
  context: BrowserContext;
  complaints: string[];
  page: Awaited<ReturnType<BrowserContext["newPage"]>>;
}> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints = watchPage(page, hub.url);
  await page.goto(`${hub.url}${address}`);
  return { context, page, complaints };
}

const base = "/app/kontinuum.sh/namespaces/kontinuum-system";
const addresses = [
  "/app/topology",
  `${base}/zones`,
  `${base}/instances`,
  `${base}/talosclusters`,
  `${base}/kontinuums`,
  "/app/connect",
  "/app/zones/add",
  `${base}/instances/add`,
];

test(
  "every page: no script or style refused, nothing asked of another host, nothing to report for accessibility",
  { skip },
  async () => {
    for (const [width, colorScheme] of [
      [1440, "light"],
      [390, "dark"],
    ] as const) {
      const { context, page, complaints } = await visit("/app/topology", {
        viewport: { width, height: 900 },
        colorScheme,
        reducedMotion: "reduce",
      });
      for (const address of addresses) {
        const response = await page.goto(`${hub.url}${address}`);
        assert.equal(response?.status(), 200, address);
        const wide = await page.evaluate(
          "document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        assert.ok(Number(wide) <= 0, `${address} scrolls sideways at ${width}`);
        const { violations } = await new AxeBuilder({ page }).analyze();
        const found = violations.map(
          ({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`,
        );
        assert.deepEqual(found, [], `${address} at ${width} ${colorScheme}`);
      }
      assert.deepEqual(complaints, []);
      await context.close();
    }
  },
);

test("the start leads to the instances, an unknown page climbs to its parent", { skip }, async () => {
  const { context, page } = await visit("/");
  assert.equal(new URL(page.url()).pathname, `${base}/instances`);
  await page.goto(`${hub.url}${base}/zones/none/of/this`);
  assert.equal(new URL(page.url()).pathname, `${base}/zones`);
  await context.close();
});

test(
  "a machine and a zone are added with forms, and the pages say what they wait for",
  { skip },
  async () => {
    const { context, page, complaints } = await visit(`${base}/instances/add`);
    await page.fill("#address", "10.255.0.1");
    await page.click("button[type=submit]");
    assert.match(new URL(page.url()).pathname, /\/instances\/instance-/);
    await page.goto(`${hub.url}/app/zones/add`);
    await page.fill("#region", "eu");
    await page.fill("#zone", "HEL01");
    await page.fill("#talos-address", "10.255.0.1");
    await page.click("button[type=submit]");
    assert.match((await page.textContent("main")) ?? "", /The zone was not added/);
    assert.equal(await page.inputValue("#region"), "eu", "what was typed stays");
    await page.fill("#zone", "hel01");
    await page.click("button[type=submit]");
    assert.equal(new URL(page.url()).pathname, `${base}/zones/eu-hel01`);
    await waitFor("the zone to say what it waits for", async () => {
      await page.reload();
      return /Waiting/.test((await page.textContent("main")) ?? "");
    });
    await page.goto(`${hub.url}/app/topology`);
    assert.equal(await page.locator(".topology .layout-wide a[href$='/zones/eu-hel01']").count(), 1);
    // A refused form answers 422, which a browser also reports on its console.
    assert.deepEqual(
      complaints.filter((line) => !line.includes("422")),
      [],
    );
    await context.close();
  },
);

test("a zone is removed only when its name is typed", { skip }, async () => {
  const { context, page } = await visit(`${base}/zones/eu-hel01/remove`);
  await page.fill("#confirm", "eu-hel02");
  await page.click("button[type=submit]");
  assert.match((await page.textContent("main")) ?? "", /not eu-hel01/);
  await page.fill("#confirm", "eu-hel01");
  await page.click("button[type=submit]");
  assert.equal(new URL(page.url()).pathname, `${base}/zones`);
  await context.close();
});

test("pages work without script, and a page re-reads itself with it", { skip }, async () => {
  const plain = await visit("/app/topology", { javaScriptEnabled: false });
  assert.match((await plain.page.textContent("h1")) ?? "", /Topology/);
  await plain.context.close();
  const live = await visit(`${base}/instances`);
  await live.page.evaluate("document.querySelector('h1').setAttribute('data-before', '1')");
  const reread = live.page.waitForResponse((response) => response.url().endsWith("/instances"), {
    timeout: 15_000,
  });
  await reread;
  assert.deepEqual(live.complaints, []);
  await live.context.close();
});

test("a form of another site, and a name that points here, are refused", { skip }, async () => {
  const body = new URLSearchParams({ address: "10.0.0.9" });
  const foreign = await fetch(`${hub.url}${base}/instances/add`, {
    method: "POST",
    body,
    headers: { origin: "http://evil.example" },
    redirect: "manual",
  });
  assert.equal(foreign.status, 403);
  const { request } = await import("node:http");
  const status = await new Promise((resolve, reject) => {
    const sent = request(`${hub.url}/app/topology`, { headers: { host: "evil.example" } }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.once("error", reject);
    sent.end();
  });
  assert.equal(status, 403);
});
