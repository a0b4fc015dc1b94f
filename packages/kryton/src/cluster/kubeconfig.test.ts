import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readClusterAccess } from "./cluster-config.ts";

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "kryton-kubeconfig-"));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

function kubeconfig(cluster: object, user: object): string {
  return JSON.stringify({
    "current-context": "a",
    contexts: [{ name: "a", context: { cluster: "c", user: "u" } }],
    clusters: [{ name: "c", cluster: { server: "https://api.example:6443/", ...cluster } }],
    users: [{ name: "u", user }],
  });
}

test("a kubeconfig is read with inline data and with files beside it", async () => {
  await inFolder(async (folder) => {
    const file = join(folder, "config");
    await writeFile(file, kubeconfig({ "certificate-authority-data": base64("CA") }, { token: "t" }));
    const inline = await readClusterAccess({ KRYTON_KUBECONFIG: file });
    assert.equal(inline?.server, "https://api.example:6443");
    assert.deepEqual([inline.ca, await inline.token?.(), inline.insecure], ["CA", "t", false]);
    for (const [name, text] of Object.entries({ ca: "CA2", cert: "CERT", key: "KEY", token: "first\n" }))
      await writeFile(join(folder, name), text);
    const user = { "client-certificate": "cert", "client-key": "key", tokenFile: "token" };
    await writeFile(file, kubeconfig({ "certificate-authority": "ca" }, user));
    const files = await readClusterAccess({ KRYTON_KUBECONFIG: file });
    assert.deepEqual([files?.ca, files?.cert, files?.key], ["CA2", "CERT", "KEY"]);
    assert.equal(await files?.token?.(), "first");
    await writeFile(join(folder, "token"), "second\n");
    assert.equal(await files?.token?.(), "second", "a rotated token is read again");
  });
});

test("what a kubeconfig may not say is refused by name", async () => {
  await inFolder(async (folder) => {
    const file = join(folder, "config");
    const refused: [string, RegExp][] = [
      [kubeconfig({}, { exec: { command: "evil" } }), /exec is not supported/],
      [kubeconfig({}, { "auth-provider": { name: "x" } }), /auth-provider/],
      [kubeconfig({}, { username: "u", password: "p" }), /username/],
      [kubeconfig({ "proxy-url": "http://p" }, {}), /proxy-url/],
      [kubeconfig({ server: "ftp://x" }, {}), /not an http\(s\) URL/],
      [kubeconfig({ server: "https://u:p@x" }, {}), /user info/],
      [kubeconfig({ "certificate-authority": "missing" }, {}), /cannot be read/],
      ["a: &a [1]\nb: *a\n", /aliases/],
      ["{", /not YAML/],
      ["{}", /no context/],
    ];
    for (const [text, problem] of refused) {
      await writeFile(file, text);
      await assert.rejects(readClusterAccess({ KRYTON_KUBECONFIG: file }), problem);
    }
    await assert.rejects(readClusterAccess({ KRYTON_KUBECONFIG: join(folder, "none") }), /cannot be read/);
  });
});

test("an endpoint is taken from its own variables; without any there is no cluster", async () => {
  await inFolder(async (folder) => {
    assert.equal(await readClusterAccess({ KUBECONFIG: "/x", HOME: folder }), undefined);
    await writeFile(join(folder, "pem"), "PEM");
    const pem = join(folder, "pem");
    const access = await readClusterAccess({
      KRYTON_KUBERNETES_ENDPOINT: "https://10.0.0.1:6443",
      KRYTON_KUBERNETES_CA_FILE: pem,
      KRYTON_KUBERNETES_CLIENT_CERT_FILE: pem,
      KRYTON_KUBERNETES_CLIENT_KEY_FILE: pem,
      KRYTON_KUBERNETES_BEARER_TOKEN: "t",
      KRYTON_KUBERNETES_INSECURE_SKIP_VERIFY: "true",
    });
    assert.deepEqual([access?.server, access?.ca, access?.insecure], ["https://10.0.0.1:6443", "PEM", true]);
    assert.equal(await access?.token?.(), "t");
    const endpoint = { KRYTON_KUBERNETES_ENDPOINT: "https://x" };
    await assert.rejects(
      readClusterAccess({ KRYTON_KUBERNETES_ENDPOINT: "x" }),
      /KRYTON_KUBERNETES_ENDPOINT/,
    );
    await assert.rejects(
      readClusterAccess({ ...endpoint, KRYTON_KUBERNETES_CA_FILE: "/none" }),
      /KRYTON_KUBERNETES_CA_FILE/,
    );
    await assert.rejects(
      readClusterAccess({ ...endpoint, KRYTON_KUBERNETES_CLIENT_CERT_FILE: pem }),
      /KRYTON_KUBERNETES_CLIENT_KEY_FILE/,
    );
  });
});
